export function render() { document.body.textContent = 'hi ' + parent.location.href; }
