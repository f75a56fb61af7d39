/** Maps from TensorBoard's server. A source has runs(), maps(run), map(...) and scores(...). */

import { SourceError } from "./errors.js";
import { MapData } from "./map_data.js";
import { Memory } from "./memory.js";

export class ServerSource {
  /** @param {URL} base: where the routes are. */
  constructor(base) {
    this.base = base;
    this.grows = true; // training may go on
    this.memory = new Memory();
  }

  async ask(route, parameters) {
    const url = new URL(route, this.base);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
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
    return (await (await this.ask("runs", {})).json()).runs;
  }

  /** The maps of a run: [{tag, name, steps, wall_times}]. */
  async maps(run) {
    return (await (await this.ask("maps", { run })).json()).maps;
  }

  /** The time of writing is part of the key: a run that is started afresh is read afresh. */
  map(run, entry, step, sample) {
    const time = entry.wall_times[entry.steps.indexOf(step)];
    return this.memory.get(JSON.stringify([run, entry.tag, step, sample, time]), async () => {
      const response = await this.ask("map", { run, tag: entry.tag, step, sample });
      const answer = await response.arrayBuffer();
      // The length of a JSON header (4 bytes), the header, the codes (H, L, S).
      const length = new DataView(answer).getUint32(0, true);
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(answer, 4, length)));
      return new MapData(header, answer.slice(4 + length));
    });
  }

  /** What is known of every head at a step, by tag. */
  scores(run, step, version) {
    return this.memory.get(JSON.stringify(["scores", run, step, version]), async () => {
      const answer = await (await this.ask("scores", { run, step })).json();
      return { byTag: new Map(answer.maps.map((one) => [one.tag, one])) };
    });
  }
}
