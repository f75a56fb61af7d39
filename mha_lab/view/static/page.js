/**
 * The page that shows maps, whatever is around it (hosts/) and wherever they lie (data/).
 *
 * One flat state (state.js) holds what is chosen and stands in the address. Whenever it or the
 * data change, the state is composed into a scene (compose.js) and the views draw the scene.
 */

import { Catalog } from "./data/catalog.js";
import { compose } from "./data/compose.js";
import { parse, serialise } from "./data/state.js";
import { el } from "./draw/dom.js";
import { colours } from "./draw/palette.js";
import { readTheme } from "./draw/raster.js";
import { makeActions } from "./parts/actions.js";
import { Controls } from "./parts/controls.js";
import { moveCrosshair } from "./parts/crosshair.js";
import { Help, bindings, listen } from "./parts/keys.js";
import { Navigator } from "./parts/navigator.js";
import { RunChooser } from "./parts/runs.js";
import { Stage } from "./parts/stage.js";
import { Timeline } from "./parts/timeline.js";
import { Tooltip } from "./parts/tooltip.js";

const REST_MS = 60;

export class Page {
  /**
   * @param host: the page around this one; see hosts/.
   * @param source: where maps come from; see data/server.js.
   */
  constructor(host, source) {
    this.host = host;
    this.state = parse(host.readAddress());
    this.scene = null;
    this.lastHead = 0;
    this.set = this.set.bind(this);
    this.catalog = new Catalog(source, () => this.update());
    this.actions = makeActions(this);
    const keys = bindings(this.actions);
    this.help = new Help(keys);
    this.controls = new Controls(this.actions, host.hasAddress !== false);
    this.runChooser = new RunChooser(this.actions);
    this.navigator = new Navigator(this.actions);
    this.timeline = new Timeline(this.actions, (steps) => this.ahead(steps));
    this.tooltip = new Tooltip();
    this.stage = new Stage(this.actions, { hover: (place) => this.hover(place), read: (focus) => this.read(focus) });
    this.notice = el("div.notice", { role: "alert", hidden: true });
    this.node = el(
      "div.page", {},
      el("aside", { "aria-label": "Runs and heads" }, this.runChooser.node, this.navigator.node),
      el("main", {}, el("h1.unseen", {}, "Attention maps"), this.controls.node, this.notice, this.stage.node, this.timeline.node),
      this.tooltip.node, this.help.node,
    );
    listen(keys);
  }

  start() {
    const { host } = this;
    document.body.append(this.node);
    host.onDark(() => this.redraw());
    host.onReload(() => this.state.live && this.catalog.refresh());
    host.onAddress(() => {
      this.state = parse(host.readAddress());
      this.update();
    });
    new ResizeObserver(() => this.stage.unsettle()).observe(this.stage.node);
    return this.catalog.refresh();
  }

  /** Change what is chosen; resolves when it is drawn. */
  set(changes) {
    Object.assign(this.state, changes);
    return this.update();
  }

  /** Compose and draw; while that is under way, further changes wait for one more round. */
  update() {
    this.stale = true;
    this.updating ??= this.rounds().finally(() => (this.updating = null));
    return this.updating;
  }

  async rounds() {
    while (this.stale) {
      this.stale = false;
      this.catalog.live = this.state.live;
      // Browsers bound how often an address may change.
      if (!this.timeline.playing) this.host.writeAddress(serialise(this.state));
      this.scene = this.catalog.runs?.length || this.state.run !== null
        ? await compose(this.state, this.catalog)
        : null;
      this.redraw();
    }
    window.clearTimeout(this.resting);
    if (!this.timeline.playing) this.resting = window.setTimeout(() => this.rest(), REST_MS);
  }

  /** Nothing is asked for now: fetch what is likely to be. */
  rest() {
    for (const pane of this.scene?.panes ?? []) pane.neighbours();
    this.timeline.rest();
  }

  /** Styles are computed only when the theme changes: it takes time, at every step of playing. */
  wear(dark) {
    if (this.theme?.dark === dark) return;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.theme = Object.assign(readTheme(document.documentElement), { dark });
  }

  redraw() {
    const { scene, state } = this;
    const dark = state.theme === "auto" ? this.host.isDark() : state.theme === "dark";
    this.wear(dark);
    const notices = [this.catalog.message, ...(scene?.notes ?? [])].filter(Boolean);
    this.notice.hidden = notices.length === 0;
    this.notice.textContent = notices.join(" ");
    this.node.classList.toggle("empty", scene === null);
    if (scene === null) {
      // Where there are runs, their maps are on the way, whatever makes the page draw now.
      this.stage.drawEmpty(this.catalog.runs?.length !== 0);
      return;
    }
    Object.assign(scene, {
      dark, table: colours(state.palette, dark), differences: colours("difference", dark),
      overlay: colours(state.palette, true), // on an image much is light
      theme: this.theme,
    });
    this.runChooser.draw(this.catalog.runs ?? [], scene, state);
    this.navigator.draw(scene, scene.table);
    this.controls.draw(scene, state, scene.table, dark);
    this.timeline.draw(scene, state, this.catalog.source.grows);
    this.stage.draw(scene);
    this.hover(null);
  }

  hover(place) {
    this.place = place;
    this.stage.crosshair(place);
    this.tooltip.show(place, this.scene);
    this.read(place && { side: "query", index: place.query, head: place.head });
  }

  /** Colour the texts by what one token reads, or what reads it: {side, index, head}, or null. */
  read(focus) {
    this.stage.colourText(focus);
  }

  /** Fetch what later steps need of the layers that are shown. */
  ahead(steps) {
    this.scene?.panes.forEach((pane, i) => {
      pane.ahead(steps, this.catalog.versionOf(pane.run), this.stage.view(i)?.tagsInSight?.());
    });
  }

  moveCrosshair(key) {
    moveCrosshair(this, key);
  }

  runs() {
    return this.catalog.runs ?? [];
  }
}
