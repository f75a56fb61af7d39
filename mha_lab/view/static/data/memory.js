/** What was read, kept as long as there is room; what was used longest ago is dropped first. */

const ROOM = 96 * 2 ** 20;

export class Memory {
  constructor(room = ROOM) {
    this.room = room;
    this.bytes = 0;
    this.entries = new Map(); // key to {promise, bytes}, the latest used last
  }

  /** The promise kept under a key; made by make() where there is none. What failed is forgotten. */
  get(key, make) {
    let entry = this.entries.get(key);
    if (!entry) {
      entry = { promise: make(), bytes: 0 };
      const own = entry;
      own.promise.then(
        (value) => {
          value.grown = (bytes) => this.grow(key, own, bytes);
          this.grow(key, own, value.bytes ?? 4096);
        },
        () => this.entries.get(key) === own && this.entries.delete(key),
      );
    }
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.promise;
  }

  has(key) {
    return this.entries.has(key);
  }

  grow(key, entry, bytes) {
    if (this.entries.get(key) !== entry) return;
    entry.bytes += bytes;
    this.bytes += bytes;
    for (const [oldest, old] of this.entries) {
      if (this.bytes <= this.room || oldest === key) break;
      this.entries.delete(oldest);
      this.bytes -= old.bytes;
    }
  }
}
