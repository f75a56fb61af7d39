/** The window of a map: which positions of its queries and keys are looked at. */

const SMALLEST = 4; // positions along an axis

/**
 * The window after zooming in (factor > 1) or out about a place.
 *
 * @param map: as it is looked at; see lens.js.
 * @param at: {query, key} of the map, as fractions of what is looked at: 0 to 1.
 * @returns {{rows, cols}}: spans of positions, null where all is looked at.
 */
export function zoomed(map, factor, at) {
  return both(map, (place, { start, size, total }) => {
    const least = Math.min(SMALLEST, total);
    const wanted = Math.round(size / factor);
    const next = Math.min(total, Math.max(least, wanted === size ? size - Math.sign(factor - 1) : wanted));
    return { start: Math.round(start + at[place] * (size - next)), size: next };
  });
}

/** The window moved by so many rows and columns. */
export function moved(map, { query, key }) {
  const by = { query, key };
  return both(map, (place, { start, size }) => ({ start: start + by[place], size }));
}

/** The window of these rows and columns of what is looked at: {query: [first, last], key: ...}. */
export function cutOut(map, spans) {
  return both(map, (place, { start }) => {
    const [first, last] = spans[place];
    return { start: start + first, size: last - first + 1 };
  });
}

/** The window moved as little as needed for a position to lie in it. */
export function containing(map, side, position) {
  const whole = positions(map.all ?? map, side);
  const at = whole.indexOf(position);
  const by = { query: 0, key: 0 };
  if (at >= 0) {
    const { start, size } = extent(map, side);
    by[side] = at < start ? at - start : at >= start + size ? at - start - size + 1 : 0;
  }
  return moved(map, by);
}

function both(map, change) {
  const span = (side) => {
    const whole = positions(map.all ?? map, side);
    const { start, size } = change(side, { ...extent(map, side), total: whole.length });
    if (size >= whole.length) return null;
    const first = Math.min(Math.max(0, start), whole.length - size);
    return [whole[first], whole[first + size - 1]];
  };
  return { rows: span("query"), cols: span("key") };
}

function extent(map, side) {
  const own = positions(map, side);
  return { start: positions(map.all ?? map, side).indexOf(own[0]), size: own.length };
}

function positions(map, side) {
  const [at, length] = side === "query" ? [map.queryAt, map.rows] : [map.keyAt, map.columns];
  return at ?? Array.from({ length }, (_, i) => i);
}
