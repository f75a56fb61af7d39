/**
 * The page around this one: TensorBoard shows a plugin in a frame of its own origin. Its address
 * carries what is chosen (as "#mha_lab_attention&p.mha_lab_attention.run=...", the form that
 * TensorBoard reserves for plugins), its body tells whether it is dark, and it says when data was
 * reloaded. Opened by itself, the page uses its own address in the same way.
 */

const NAME = "mha_lab_attention";
const PREFIX = `p.${NAME}.`;

const host = (() => {
  try {
    void window.parent.location.href; // refused when the frame around is of another origin
    return window.parent;
  } catch {
    return window;
  }
})();
export const framed = host !== window;

function pieces() {
  return host.location.hash.replace(/^#/, "").split("&").filter(Boolean);
}

/** Whether the host shows this plugin now, rather than another tab. */
function isShown() {
  return !framed || pieces()[0] === NAME;
}

/** The choices in the address, as a Map of texts. */
export function readAddress() {
  const found = new Map();
  for (const piece of pieces()) {
    const [name, ...rest] = piece.split("=");
    try {
      const plain = decodeURIComponent(name);
      if (plain.startsWith(PREFIX)) {
        found.set(plain.slice(PREFIX.length), decodeURIComponent(rest.join("=")));
      }
    } catch {
      // A broken escape in the address: as if it were not there.
    }
  }
  return found;
}

export function addressOf(pairs) {
  const ours = pairs.map(([name, text]) => `${PREFIX}${name}=${encodeURIComponent(text)}`);
  const others = pieces().filter((piece) => piece !== NAME && !piece.startsWith(PREFIX));
  const url = new URL(host.location.href);
  url.hash = [...(framed ? [NAME] : []), ...others, ...ours].join("&");
  return url.href;
}

/** Put the choices into the address without a new entry in the browser's history. */
export function writeAddress(pairs) {
  if (!isShown()) return;
  const address = addressOf(pairs);
  if (address !== host.location.href) host.history.replaceState(host.history.state, "", address);
}

/** Call back when the address is changed by hand, by a link, or by going back. */
export function onAddress(callback) {
  host.addEventListener("hashchange", () => {
    if (isShown()) callback();
  });
}

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

/** Whether TensorBoard, or else the system, is dark. */
export function isDark() {
  return framed ? host.document.body.classList.contains("dark-mode") : prefersDark.matches;
}

export function onDark(callback) {
  prefersDark.addEventListener("change", callback);
  if (framed) {
    const watch = new MutationObserver(callback);
    watch.observe(host.document.body, { attributes: true, attributeFilter: ["class"] });
  }
}

/** Call back when TensorBoard has reloaded its data; it asks each frame over a message port. */
export function onReload(callback) {
  if (!framed) return;
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.isReply) return;
    port1.postMessage(
      JSON.stringify({ type: message.type, id: message.id, payload: null, error: null, isReply: true }),
    );
    if (message.type === "experimental.DataReloaded") callback();
  };
  host.postMessage("experimental.bootstrap", window.location.origin, [port2]);
}
