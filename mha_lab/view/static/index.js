/** The Attention tab: TensorBoard imports this module into a frame and calls render(). */

import { el } from "./draw/dom.js";
import * as host from "./hosts/tensorboard.js";
import { Page } from "./page.js";
import { ServerSource } from "./data/server.js";
import { parse } from "./data/state.js";

/** Called by TensorBoard. */
export async function render() {
  const source = new ServerSource(new URL("..", import.meta.url));
  source.begin(parse(host.readAddress())); // it answers while the page is made
  const style = el("link", { rel: "stylesheet", href: new URL("style.css", import.meta.url) });
  const styled = new Promise((resolve) => {
    style.addEventListener("load", resolve);
    style.addEventListener("error", resolve);
  });
  document.head.append(el("meta", { name: "viewport", content: "width=device-width" }), style);
  document.documentElement.lang = "en";
  document.title ||= "Attention";
  await styled;
  await new Page(host, source).start();
  window.focus(); // keys work at once
}
