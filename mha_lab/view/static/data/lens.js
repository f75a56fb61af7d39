/**
 * A map as it is looked at: without the tokens that were hidden, each row scaled anew to what it
 * summed to, and of that only a window. It stands in for the map: same methods, other size.
 */

const made = new WeakMap(); // map to {signature, view}

/**
 * @param {object} choices: hide: token texts; rows and cols: [first, last] positions, or null.
 */
export function look(map, { hide, rows, cols: columns }) {
  if (!hide.length && !rows && !columns) return map;
  const signature = JSON.stringify([hide, rows, columns]);
  const known = made.get(map);
  if (known?.signature === signature) return known.view;
  const hidden = new Set(hide);
  const kept = (tokens, length) =>
    Array.from({ length }, (_, i) => i).filter((i) => !tokens || !hidden.has(tokens[i]));
  const queries = kept(map.queryTokens, map.rows);
  const keys = kept(map.keyTokens, map.columns);
  const gone = map.rows - queries.length + (map.columns - keys.length);
  const all = gone ? select(map, queries, keys, true) : map;
  const inside = (positions, window) => {
    const found = window ? positions.filter((i) => i >= window[0] && i <= window[1]) : positions;
    return found.length ? found : positions; // another pane's map may be shorter
  };
  const view = rows || columns
    ? select(all, places(all, "queryAt", all.rows, inside(queries, rows)), places(all, "keyAt", all.columns, inside(keys, columns)), false)
    : all;
  if (view === map) return map;
  view.hiddenCount = gone;
  view.all = all; // without the window
  made.set(map, { signature, view });
  return view;
}

/** Where positions of the whole map lie in a part of it. */
function places(map, which, length, positions) {
  const at = map[which] ?? Array.from({ length }, (_, i) => i);
  const wanted = new Set(positions);
  return at.flatMap((position, i) => (wanted.has(position) ? [i] : []));
}

/** The row or column that shows a position of the whole map; -1 where none does. */
export function indexOf(map, side, position) {
  if (position === null || position === undefined) return -1;
  const [at, length] = side === "query" ? [map.queryAt, map.rows] : [map.keyAt, map.columns];
  return at ? at.indexOf(position) : position < length ? position : -1;
}

/** The position in the whole map of a row or column of what is looked at. */
export function positionOf(map, side, index) {
  return (side === "query" ? map.queryAt : map.keyAt)?.[index] ?? index;
}

function select(map, queries, keys, anew) {
  const view = Object.create(map);
  const pick = (tokens, at) => tokens && at.map((i) => tokens[i]);
  const heads = new Map();
  const factors = new Map();
  Object.assign(view, {
    whole: map.whole ?? map,
    rows: queries.length,
    columns: keys.length,
    queryTokens: pick(map.queryTokens, queries),
    keyTokens: pick(map.keyTokens, keys),
    queryAt: queries.map((i) => map.queryAt?.[i] ?? i),
    keyAt: keys.map((i) => map.keyAt?.[i] ?? i),
    rowMaxima: new Map(),
    tops: new Map(),
    of(head) {
      if (!heads.has(head)) {
        const { weights, factor } = cut(map.of(head), map.columns, queries, keys, anew);
        heads.set(head, weights);
        factors.set(head, factor);
      }
      return heads.get(head);
    },
  });
  if (!anew) view.top = (head) => map.top(head); // colours stay while the window moves
  else view.errorOf = (value) => Math.max(1, ...[...factors.values()]) * map.errorOf(value);
  return view;
}

function cut(weights, columns, queries, keys, anew) {
  const result = new Float32Array(queries.length * keys.length);
  let factor = 1;
  queries.forEach((q, row) => {
    let [sum, kept] = [0, 0];
    for (let k = 0; anew && k < columns; k += 1) sum += weights[q * columns + k];
    for (let i = 0; i < keys.length; i += 1) {
      const value = weights[q * columns + keys[i]];
      result[row * keys.length + i] = value;
      kept += value;
    }
    if (!anew || !(kept > 0)) return;
    const scale = sum / kept;
    factor = Math.max(factor, scale);
    for (let i = 0; i < keys.length; i += 1) result[row * keys.length + i] *= scale;
  });
  return { weights: result, factor };
}
