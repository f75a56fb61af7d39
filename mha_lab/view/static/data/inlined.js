/** Maps that lie in the page itself, as mha_lab/view/page.py puts them there. */

import { SourceError } from "./errors.js";
import { MapData } from "./map_data.js";
import { Memory } from "./memory.js";

export class InlinedSource {
  /** @param {object} about: what the page's script element "about" holds. */
  constructor(about) {
    this.about = about;
    this.grows = false;
    this.memory = new Memory();
    this.runsByName = new Map(about.runs.map((run) => [run.run, run.maps]));
  }

  async runs() {
    return this.about.runs.map(({ run, maps }) => ({
      run, maps: maps.length, last_step: Math.max(...maps.flatMap((one) => one.steps)),
      last_wall_time: Math.max(...maps.flatMap((one) => one.wall_times)),
    }));
  }

  async maps(run) {
    if (!this.runsByName.has(run)) throw new SourceError(`There are no maps called “${run}” here.`);
    return this.runsByName.get(run);
  }

  header(part) {
    const header = this.about.headers[part];
    const of = (place) => (place === null ? null : this.about.shared[place]);
    const [samples, heads] = header.shape;
    return {
      ...header, head_count: heads,
      samples: header.samples ?? Array.from({ length: samples }, (_, i) => i),
      query_tokens: of(header.query_tokens), key_tokens: of(header.key_tokens),
      images: of(header.images),
      scores: Object.fromEntries(
        Object.entries(header.scores).map(([name, values]) =>
          [name, Array.isArray(values[0]) ? values : Array.from({ length: samples }, () => values)],
        ),
      ),
    };
  }

  map(run, entry, step, sample) {
    const part = entry.parts[entry.steps.indexOf(step)];
    return this.memory.get(JSON.stringify([part, sample]), async () => {
      const header = this.header(part);
      if (sample >= header.shape[0]) throw new SourceError(`There is no sample ${sample} here.`);
      const codes = await this.memory.get(part, () => unpack(part));
      const { bits, zero, levels, scale } = header;
      const size = (header.shape.slice(1).reduce((a, b) => a * b, 1) * bits) / 8;
      return new MapData(
        {
          ...header, step, shape: header.shape.slice(1), coding: { bits, zero, levels, scale },
          wall_time: entry.wall_times[entry.steps.indexOf(step)],
          query_tokens: header.query_tokens?.[sample] ?? null,
          key_tokens: header.key_tokens?.[sample] ?? null,
          image: header.images?.[sample] ?? null,
        },
        new Uint8Array(codes.buffer, sample * size, size),
      );
    });
  }

  ahead(run, entries, steps, sample) {
    this.mapsAhead(run, entries, steps, sample);
  }

  mapsAhead(run, entries, steps, sample) {
    for (const entry of entries) {
      for (const step of steps) if (entry.steps.includes(step)) this.map(run, entry, step, sample).catch(() => null);
    }
  }

  async scores(run, step) {
    const maps = (await this.maps(run)).filter(({ steps }) => steps[0] <= step);
    return {
      byTag: new Map(maps.map(({ tag, steps, parts }) => {
        const place = steps.findLastIndex((one) => one <= step);
        const header = this.header(parts[place]);
        return [tag, { ...header, tag, step: steps[place], largest: header.scale }];
      })),
    };
  }
}

/** The codes of a part: base64 in the page, compressed by zlib. */
async function unpack(part) {
  const text = window.atob(document.getElementById(`part${part}`).textContent);
  const packed = Uint8Array.from(text, (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  return { buffer, bytes: buffer.byteLength };
}
