/**
 * A page by itself: a file, or a notebook's cell, which shows it in a frame. A file keeps what is
 * chosen in its address; a cell has no address, and is as dark as the notebook around it.
 */

const PREFIX = "attention.";
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

/** @param {object} initial: what is chosen at first, as texts by name. */
export function aloneHost(initial) {
  const isFile = window.location.protocol !== "about:";
  return {
    readAddress: () => new Map([...Object.entries(initial), ...(isFile ? pieces() : [])]),
    addressOf,
    writeAddress(pairs) {
      if (!isFile) return;
      try {
        window.history.replaceState(null, "", addressOf(pairs));
      } catch {
        // Some viewers forbid it; the choices then last as long as the page.
      }
    },
    onAddress: (callback) => isFile && window.addEventListener("hashchange", callback),
    isDark,
    onDark(callback) {
      prefersDark.addEventListener("change", callback);
      const around = notebook();
      if (!around) return;
      const watch = new MutationObserver(callback);
      for (const node of [around.body, around.documentElement]) watch.observe(node, { attributes: true });
    },
    onReload() {},
    hasAddress: isFile,
  };
}

function pieces() {
  return window.location.hash.slice(1).split("&").flatMap((piece) => {
    const [name, ...rest] = piece.split("=");
    try {
      return name.startsWith(PREFIX) ? [[name.slice(PREFIX.length), decodeURIComponent(rest.join("="))]] : [];
    } catch {
      return []; // a broken escape: as if it were not there
    }
  });
}

function addressOf(pairs) {
  const url = new URL(window.location.href);
  url.hash = pairs.map(([name, text]) => `${PREFIX}${name}=${encodeURIComponent(text)}`).join("&");
  return url.href;
}

/** The document around this frame, where it can be seen. */
function notebook() {
  try {
    return window.parent === window ? null : window.parent.document;
  } catch {
    return null;
  }
}

/** JupyterLab and Notebook, VS Code and Colab each say it in their own way. */
function isDark() {
  const around = notebook();
  const light = around?.body.dataset.jpThemeLight;
  if (light !== undefined) return light === "false";
  const kind = around?.body.dataset.vscodeThemeKind ?? around?.body.className ?? "";
  if (/vscode-(dark|high-contrast)(?!-light)/.test(kind)) return true;
  if (/vscode-/.test(kind)) return false;
  const theme = around?.documentElement.getAttribute("theme");
  return theme ? theme === "dark" : prefersDark.matches;
}
