/** What the page asks the server, and remembers. */

import { MapData } from "./map_data.js";

const BASE = new URL("..", import.meta.url);
const REMEMBERED_BYTES = 256 * 2 ** 20;

export class ServerError extends Error {}

async function ask(route, parameters) {
  const url = new URL(route, BASE);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  let response;
  try {
    response = await fetch(url);
  } catch {
    throw new ServerError("TensorBoard does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const sentence = response.headers.get("content-type")?.startsWith("text/plain")
    ? await response.text()
    : `TensorBoard answered with error ${response.status}.`;
  throw new ServerError(sentence);
}

export async function fetchRuns() {
  return (await (await ask("runs", {})).json()).runs;
}

export async function fetchMaps(run) {
  return (await (await ask("maps", { run })).json()).maps;
}

/** Promises by key, the latest used last; those used longest ago are dropped first. */
const remembered = new Map();
let bytes = 0;

function remember(key, make) {
  let entry = remembered.get(key);
  if (!entry) {
    entry = { promise: make(), bytes: 0 };
    entry.promise.then(
      (value) => {
        entry.bytes = value.bytes ?? 4096;
        bytes += entry.bytes;
        for (const [oldest, old] of remembered) {
          if (bytes <= REMEMBERED_BYTES || oldest === key) break;
          remembered.delete(oldest);
          bytes -= old.bytes;
        }
      },
      () => remembered.delete(key),
    );
  }
  remembered.delete(key);
  remembered.set(key, entry);
  return entry.promise;
}

/** The time of writing is part of the key: a run that is started afresh is read afresh. */
export function fetchMap(run, entry, step, sample) {
  const time = entry.wall_times[entry.steps.indexOf(step)];
  return remember(JSON.stringify([run, entry.tag, step, sample, time]), async () => {
    const response = await ask("map", { run, tag: entry.tag, step, sample });
    return new MapData(await response.arrayBuffer());
  });
}

export function fetchScores(run, step, version) {
  return remember(JSON.stringify(["scores", run, step, version]), async () => {
    const answer = await (await ask("scores", { run, step })).json();
    return { byTag: new Map(answer.maps.map((one) => [one.tag, one])) };
  });
}
