/** Maps from TensorBoard's server. A source has runs(), maps(run), map(...), scores(...), ahead(...) and mapsAhead(...). */

import { version } from "./catalog.js";
import { SourceError } from "./errors.js";
import { MapData } from "./map_data.js";
import { Memory } from "./memory.js";

const LAYER_PX = 150; // of a layer in an overview, more or less

export class ServerSource {
  /** @param {URL} base: where the routes are. */
  constructor(base) {
    this.base = base;
    this.grows = true; // training may go on
    this.memory = new Memory();
    this.first = null; // the answer to begin()
    this.listed = null; // the run whose maps came with it, and they
  }

  /** Ask in one request for all that the first picture of what is chosen needs. */
  begin({ run, layer, step, sample, view, order }) {
    const isOverview = view === "overview" && order === "model";
    const maps = isOverview ? Math.min(64, Math.ceil(window.innerHeight / LAYER_PX)) : 0;
    const given = Object.entries({ run, layer, step, sample, maps }).filter(([, value]) => value !== null);
    this.first = this.ask("start", Object.fromEntries(given))
      .then(async (response) => this.remember(frames(await response.arrayBuffer()), sample))
      .catch(() => null); // then everything is asked for by itself, and what fails says why
  }

  /** Put what came where it will be asked for; the runs, which are asked for first. */
  remember([[about], ...maps], sample) {
    const { runs, run, step, scores } = about;
    if (run === null) return runs;
    this.listed = about;
    const known = version(runs.find((one) => one.run === run));
    this.memory.get(scoresKey(run, step, known), async () => scoresByTag(scores));
    for (const [header, codes] of maps) {
      const entry = about.maps.find(({ tag }) => tag === header.tag);
      this.memory.get(keyOf(run, entry, header.step, sample), async () => new MapData(header, codes));
    }
    return runs;
  }

  async ask(route, parameters) {
    const url = new URL(route, this.base);
    for (const [name, value] of Object.entries(parameters)) {
      for (const one of [value].flat()) url.searchParams.append(name, one);
    }
    let response;
    try {
      response = await fetch(url);
    } catch {
      throw new SourceError("TensorBoard does not answer. Is it still running?");
    }
    if (response.ok) return response;
    const sentence = response.headers.get("content-type")?.startsWith("text/plain")
      ? await response.text()
      : `TensorBoard answered with error ${response.status}.`;
    throw new SourceError(sentence);
  }

  /** [{run, maps, last_step, last_wall_time}] */
  async runs() {
    const first = await this.first;
    this.first = null;
    return first ?? (await (await this.ask("runs", {})).json()).runs;
  }

  /** The maps of a run: [{tag, name, steps, wall_times}]. */
  async maps(run) {
    const { listed } = this;
    this.listed = null;
    if (listed?.run === run) return listed.maps;
    return (await (await this.ask("maps", { run })).json()).maps;
  }

  map(run, entry, step, sample) {
    return this.memory.get(keyOf(run, entry, step, sample), () => this.mapAlone(run, entry.tag, step, sample));
  }

  async mapAlone(run, tag, step, sample) {
    const response = await this.ask("map", { run, tag, step, sample });
    const [[header, codes]] = frames(await response.arrayBuffer());
    return new MapData(header, codes);
  }

  /** What is known of every head at a step, by tag. */
  scores(run, step, version) {
    this.scoresAhead(run, [step], version);
    return this.memory.get(scoresKey(run, step, version), () => Promise.reject(new SourceError("forgotten")));
  }

  /** Fetch what map() and scores() will be asked for, in one request each. */
  ahead(run, entries, steps, sample, version) {
    this.mapsAhead(run, entries, steps, sample);
    this.scoresAhead(run, steps, version);
  }

  mapsAhead(run, entries, steps, sample) {
    const missing = entries.flatMap((entry) =>
      steps.filter((step) => entry.steps.includes(step) && !this.memory.has(keyOf(run, entry, step, sample)))
        .map((step) => ({ entry, step })));
    if (missing.length) this.several(run, missing, sample);
  }

  several(run, missing, sample) {
    const unique = (values) => [...new Set(values)];
    const tag = unique(missing.map(({ entry }) => entry.tag));
    const step = unique(missing.map((one) => one.step));
    const answer = this.ask("several", { run, tag, step, sample })
      .then((response) => response.arrayBuffer())
      .then((buffer) => new Map(frames(buffer).map(([header, codes]) => [`${header.step} ${header.tag}`, [header, codes]])));
    for (const { entry, step: own } of missing) {
      this.memory.get(keyOf(run, entry, own, sample), async () => {
        const found = (await answer).get(`${own} ${entry.tag}`);
        return found ? new MapData(...found) : this.mapAlone(run, entry.tag, own, sample); // which says why
      });
    }
  }

  scoresAhead(run, steps, version) {
    const step = steps.filter((one) => !this.memory.has(scoresKey(run, one, version)));
    if (!step.length) return;
    const answer = this.ask("scores", { run, step }).then((response) => response.json());
    for (const own of step) {
      this.memory.get(scoresKey(run, own, version), async () => {
        const { maps } = (await answer).steps.find((one) => one.step === own);
        return scoresByTag(maps);
      });
    }
  }
}

function scoresByTag(maps) {
  return { byTag: new Map(maps.map((one) => [one.tag, one])) };
}

/** The time of writing is part of the key: a run that is started afresh is read afresh. */
function keyOf(run, { tag, steps, wall_times: times }, step, sample) {
  return JSON.stringify([run, tag, step, sample, times[steps.indexOf(step)]]);
}

function scoresKey(run, step, version) {
  return JSON.stringify(["scores", run, step, version]);
}

/** The maps of an answer: each the length of a JSON header (4 bytes), it, and its codes (H, L, S). */
function frames(buffer) {
  const found = [];
  for (let at = 0; at < buffer.byteLength;) {
    const length = new DataView(buffer).getUint32(at, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, at + 4, length)));
    at += 4 + length;
    found.push([header, new Uint8Array(buffer, at, header.bytes)]); // not copied: there may be much
    at += header.bytes;
  }
  return found;
}
