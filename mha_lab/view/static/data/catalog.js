/** Which runs and maps there are now, kept up to date while training goes on. */

import { fetchMaps, fetchRuns } from "./api.js";

const EVERY_MS = 5000;

export class Catalog {
  /** @param {() => void} onChange: called when there is something new. */
  constructor(onChange) {
    this.runs = null; // null: not asked yet
    this.message = null; // what went wrong the last time
    this.maps = new Map(); // run to Promise of its maps
    this.onChange = onChange;
    this.live = true;
    window.setInterval(() => {
      if (this.live && document.visibilityState === "visible") this.refresh();
    }, EVERY_MS);
  }

  /** Ask for the runs; forget the maps of those that have changed or vanished. */
  async refresh() {
    let runs;
    try {
      runs = await fetchRuns();
    } catch (error) {
      const news = this.message !== error.message;
      this.message = error.message;
      if (news) this.onChange();
      return;
    }
    const before = new Map((this.runs ?? []).map((run) => [run.run, version(run)]));
    const now = new Map(runs.map((run) => [run.run, version(run)]));
    const changed = [...before.keys(), ...now.keys()].filter(
      (run) => before.get(run) !== now.get(run),
    );
    const news = this.runs === null || this.message !== null || changed.length > 0;
    for (const run of changed) this.maps.delete(run);
    this.runs = runs;
    this.message = null;
    if (news) this.onChange();
  }

  /** The maps of a run: [{tag, name, steps, wall_times}]. */
  mapsOf(run) {
    if (!this.maps.has(run)) {
      const promise = fetchMaps(run);
      promise.catch(() => this.maps.delete(run)); // ask again next time
      this.maps.set(run, promise);
    }
    return this.maps.get(run);
  }

  /** Changes whenever the run was written to. */
  versionOf(run) {
    const known = this.runs?.find((one) => one.run === run);
    return known ? version(known) : "";
  }

  /** The run that was written last. */
  latest() {
    const newest = (a, b) => (b.last_wall_time > a.last_wall_time ? b : a);
    return this.runs?.length ? this.runs.reduce(newest).run : null;
  }
}

function version({ maps, last_step: step, last_wall_time: time }) {
  return `${maps} ${step} ${time}`;
}
