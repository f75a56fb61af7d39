/** What leaves the page: files and links, and the sentence that says what became of them. */

import { serialise } from "../data/state.js";
import { el } from "../draw/dom.js";
import { download } from "../draw/download.js";

const SAID_MS = 2600;

export async function downloadShown(page, kind) {
  try {
    await download(kind, page.scene);
  } catch (error) {
    say(page, `The ${kind.toUpperCase()} could not be made: ${error.message}`);
  }
}

export async function copyLink(page) {
  const address = page.host.addressOf(serialise(page.state));
  try {
    await navigator.clipboard.writeText(address);
    say(page, "Link copied.");
  } catch {
    // Browsers allow the clipboard only on secure pages; the address bar holds the same link.
    say(page, "The browser refuses to copy; the address bar holds the link.");
  }
}

function say(page, sentence) {
  const node = el("div.toast", { role: "status" }, sentence);
  page.node.append(node);
  window.setTimeout(() => node.remove(), SAID_MS);
}
