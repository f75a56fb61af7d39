/** A page by itself, with its maps inside: what a notebook shows and what is saved as a file. */

import { InlinedSource } from "./data/inlined.js";
import { aloneHost } from "./hosts/alone.js";
import { Page } from "./page.js";

const about = JSON.parse(document.getElementById("about").textContent);
new Page(aloneHost(about.state), new InlinedSource(about)).start();
