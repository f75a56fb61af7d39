/**
 * What counts as large in a map. The largest weight often says nothing: of a causal map it is the
 * first row's 1.0, and many heads rest on one key (the first, a separator). So the first rows of a
 * causal map and keys that nearly every query rests on are left out, and of the other rows' largest
 * weights one is taken that three quarters of them do not exceed.
 */

const SHARE = 0.75;
const FEWEST_ROWS = 8; // below that, every row counts
const FEWEST_KEYS = 4; // a row that sees fewer has no choice
const RESTING = [0.15, 6]; // a mean weight that large, and so many times the middle one

export function robustTop(weights, rows, columns) {
  const sinks = restingKeys(weights, rows, columns);
  const maxima = [];
  let largest = 0;
  for (let q = 0; q < rows; q += 1) {
    let [most, seen] = [0, 0];
    for (let k = 0; k < columns; k += 1) {
      const size = Math.abs(weights[q * columns + k]);
      if (!(size > 0)) continue;
      seen += 1;
      if (size > largest) largest = size;
      if (size > most && !sinks.has(k)) most = size;
    }
    if (most > 0 && seen >= Math.min(FEWEST_KEYS, columns)) maxima.push(most);
  }
  if (rows < FEWEST_ROWS || maxima.length < FEWEST_ROWS / 2) return largest;
  maxima.sort((a, b) => a - b);
  return maxima[Math.floor(SHARE * (maxima.length - 1))];
}

/** Keys that the queries which see them rest on, far more than on the middle key. */
function restingKeys(weights, rows, columns) {
  const sums = new Float64Array(columns);
  const seen = new Uint32Array(columns);
  for (let q = 0, i = 0; q < rows; q += 1) {
    for (let k = 0; k < columns; k += 1, i += 1) {
      const size = Math.abs(weights[i]);
      if (!(size > 0)) continue;
      sums[k] += size;
      seen[k] += 1;
    }
  }
  const means = sums.map((sum, k) => (seen[k] >= rows / 4 && seen[k] > 0 ? sum / seen[k] : 0));
  const middle = Float64Array.from(means).sort()[columns >> 1];
  const [least, times] = RESTING;
  const found = new Set();
  means.forEach((mean, k) => {
    if (mean > least && mean > times * middle) found.add(k);
  });
  return found.size < columns / 2 ? found : new Set();
}
