/** What one pane shows: a run's maps, the chosen one with its data, and every head's scores. */

import { shortNames } from "../draw/format.js";
import { SourceError } from "./errors.js";

export class Pane {
  /**
   * @param {number} number: 1 to 4; its key is A to D.
   * @param {object} wanted: run, and layer, step and sample where it has its own.
   */
  constructor(source, number, wanted) {
    Object.assign(this, { source, number, key: "ABCD"[number - 1], run: wanted.run, wanted });
    Object.assign(this, { entries: [], entry: null, step: null, sample: 0 });
    Object.assign(this, { whole: null, map: null, scores: null, message: null, names: new Map() });
  }

  /**
   * Choose the map: the one with this tag, else the one at the same place as the first pane's.
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
  stepOf(entry, wanted = this.at) {
    let found = entry.steps[0];
    for (const step of entry.steps) if (step <= wanted) found = step;
    return found;
  }

  /** Load the map at a step, for a sample, unless the pane has its own. */
  async load(step, sample, version) {
    this.at = this.wanted.step ?? step;
    this.step = this.stepOf(this.entry);
    this.sample = this.wanted.sample ?? sample;
    const scores = this.source.scores(this.run, this.at, version).catch(() => null);
    try {
      this.whole = await this.source.map(this.run, this.entry, this.step, this.sample);
      this.scores = await scores;
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      this.scores = await scores;
      const samples = this.scores?.byTag.get(this.entry.tag)?.samples.length ?? 0;
      if (samples > 0 && this.sample >= samples) {
        // This run has fewer samples than the other: show its last.
        this.wanted = { ...this.wanted, sample: samples - 1 };
        await this.load(step, sample, version);
      } else this.message = error.message;
    }
  }

  /** Fetch what later steps need, of this layer and of others that are shown, before its turn comes. */
  ahead(steps, version, tags = new Set()) {
    if (!this.entry || this.wanted.step !== null) return;
    const entries = this.entries.filter((entry) => entry === this.entry || tags.has(entry.tag));
    const own = [...new Set(entries.flatMap((entry) => steps.map((step) => this.stepOf(entry, step))))];
    this.source.ahead(this.run, entries, own, this.sample, version);
  }

  /** Fetch the layers before and after, which most often are looked at next. */
  neighbours() {
    if (!this.whole) return;
    for (const entry of [this.entries[this.place + 1], this.entries[this.place - 1]]) {
      if (entry) this.source.map(this.run, entry, this.stepOf(entry), this.sample).catch(() => null);
    }
  }

  /** A head's score, undefined where it has none (as the mean of the heads). */
  scoreOf(name, head, tag = this.entry.tag) {
    const about = this.scores?.byTag.get(tag) ?? (tag === this.entry.tag ? this.whole : null);
    return about?.scores[name]?.[this.sample]?.[head] ?? undefined;
  }

  /** Every head of every layer, in the model's order or by a score; heads without it come last. */
  ranking(score, order) {
    const heads = this.entries.flatMap(({ tag }) => {
      const known = this.scores?.byTag.get(tag)?.head_count;
      const count = known ?? (tag === this.entry.tag && this.whole ? this.whole.headCount : 0);
      return Array.from({ length: count }, (_, head) => {
        return { tag, head, value: this.scoreOf(score, head, tag) };
      });
    });
    if (order === "model") return heads;
    const sign = order === "high" ? -1 : 1;
    const key = ({ value }) => (value === undefined ? Infinity : sign * value);
    return heads.sort((a, b) => key(a) - key(b) || 0);
  }

  /** What the heads of a map are called by. */
  headsOf(tag) {
    const about = this.scores?.byTag.get(tag);
    return about && { heads: about.heads, headCount: about.head_count, keyHeads: about.key_heads ?? null };
  }

  scoreNames() {
    const names = new Set(Object.keys(this.whole?.scores ?? {}));
    for (const about of this.scores?.byTag.values() ?? []) {
      for (const name of Object.keys(about.scores)) names.add(name);
    }
    return [...names];
  }

  /** The largest weight that any map of this run has at this step. */
  largest() {
    const all = [...(this.scores?.byTag.values() ?? [])].map((about) => about.largest);
    return Math.max(0, ...(all.length || !this.whole ? all : [this.whole.maximum("mean")]));
  }
}
