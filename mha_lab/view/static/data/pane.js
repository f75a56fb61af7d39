/** What one run shows: its maps, the chosen one with its data, and every head's scores. */

import { fetchMap, fetchScores } from "./api.js";
import { shortNames } from "./format.js";

export class Pane {
  constructor(key, run) {
    Object.assign(this, { key, run, entries: [], entry: null, step: null, sample: 0 });
    Object.assign(this, { map: null, scores: null, message: null, names: new Map() });
  }

  /**
   * Choose the map: the one with this tag, else the one at the same place as the other pane's.
   * Variants of a model may name their layers differently.
   */
  choose(entries, tag, place) {
    this.entries = entries;
    const names = shortNames(entries.map((entry) => entry.name));
    // Two tags may have one name, as those of training and of validation; then the tag tells more.
    const unique = new Set(entries.map((entry) => entry.name)).size === entries.length;
    const tags = unique ? null : shortNames(entries.map((entry) => entry.tag));
    this.names = new Map(
      entries.map((entry) => [entry.tag, unique ? names.get(entry.name) : tags.get(entry.tag)]),
    );
    this.entry = entries.find((entry) => entry.tag === tag)
      ?? entries[Math.min(Math.max(place, 0), entries.length - 1)];
  }

  get place() {
    return this.entries.indexOf(this.entry);
  }

  shortName(tag) {
    return this.names.get(tag) ?? tag;
  }

  /** The last step of a map that is not after the wanted one; its first where all are. */
  stepOf(entry) {
    let found = entry.steps[0];
    for (const step of entry.steps) if (step <= this.wanted) found = step;
    return found;
  }

  async load(wanted, sample, version) {
    this.wanted = wanted;
    this.step = this.stepOf(this.entry);
    this.sample = sample;
    const scores = fetchScores(this.run, wanted, version).catch(() => null);
    try {
      this.map = await fetchMap(this.run, this.entry, this.step, sample);
      this.scores = await scores;
    } catch (error) {
      this.scores = await scores;
      const samples = this.scores?.byTag.get(this.entry.tag)?.samples.length ?? 0;
      if (samples > 0 && sample >= samples) {
        // The other run has more samples than this one: show the last.
        await this.load(wanted, samples - 1, version);
      } else this.message = error.message;
    }
  }

  /** A head's score, undefined where it has none (as the mean of the heads). */
  scoreOf(name, head, tag = this.entry.tag) {
    const about = this.scores?.byTag.get(tag) ?? (tag === this.entry.tag ? this.map : null);
    return about?.scores[name]?.[this.sample]?.[head] ?? undefined;
  }

  /** Every head of every layer, in the model's order or by a score; heads without it come last. */
  ranking(score, order) {
    const heads = this.entries.flatMap(({ tag }) => {
      const known = this.scores?.byTag.get(tag)?.head_count;
      const count = known ?? (tag === this.entry.tag && this.map ? this.map.headCount : 0);
      return Array.from({ length: count }, (_, head) => {
        return { tag, head, value: this.scoreOf(score, head, tag) };
      });
    });
    if (order === "model") return heads;
    const sign = order === "high" ? -1 : 1;
    const key = ({ value }) => (value === undefined ? Infinity : sign * value);
    return heads.sort((a, b) => key(a) - key(b) || 0);
  }

  scoreNames() {
    const names = new Set(Object.keys(this.map?.scores ?? {}));
    for (const about of this.scores?.byTag.values() ?? []) {
      for (const name of Object.keys(about.scores)) names.add(name);
    }
    return [...names];
  }

  /** The largest weight that any map of this run has at this step. */
  largest() {
    const all = [...(this.scores?.byTag.values() ?? [])].map((about) => about.largest);
    return Math.max(0, ...(all.length || !this.map ? all : [this.map.maximum("mean")]));
  }
}
