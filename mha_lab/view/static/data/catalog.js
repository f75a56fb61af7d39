/** Which runs and maps there are now, kept up to date while training goes on. */

const EVERY_MS = 5000;

export class Catalog {
  /**
   * @param source: where maps come from; see server.js.
   * @param {() => void} onChange: called when there is something new.
   */
  constructor(source, onChange) {
    this.source = source;
    this.runs = null; // null: not asked yet
    this.message = null; // what went wrong the last time
    this.known = new Map(); // run to Promise of its maps
    this.onChange = onChange;
    this.live = true;
    if (!source.grows) return;
    window.setInterval(() => {
      if (this.live && document.visibilityState === "visible") this.refresh();
    }, EVERY_MS);
  }

  /** Ask for the runs; forget the maps of those that have changed or vanished. */
  async refresh() {
    let runs;
    try {
      runs = await this.source.runs();
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
    for (const run of changed) this.known.delete(run);
    this.runs = runs;
    this.message = null;
    if (news) await this.onChange();
  }

  /** The maps of a run: [{tag, name, steps, wall_times}]. */
  mapsOf(run) {
    if (!this.known.has(run)) {
      const promise = this.source.maps(run);
      promise.catch(() => this.known.delete(run)); // ask again next time
      this.known.set(run, promise);
    }
    return this.known.get(run);
  }

  /** Changes whenever the run was written to. */
  versionOf(run) {
    const known = this.runs?.find((one) => one.run === run);
    return known ? version(known) : "";
  }

  /** The run that was written last; the first where all are of one time. */
  latest() {
    const newest = (a, b) => (b.last_wall_time > a.last_wall_time ? b : a);
    return this.runs?.length ? this.runs.reduce(newest).run : null;
  }
}

/** What of a run tells that it was written to. */
export function version({ maps, last_step: step, last_wall_time: time }) {
  return `${maps} ${step} ${time}`;
}
