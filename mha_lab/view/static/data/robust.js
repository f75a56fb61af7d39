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
  const found = lookThrough(weights, rows, columns, null);
  const resting = restingKeys(found, rows);
  const { maxima } = resting ? lookThrough(weights, rows, columns, resting) : found;
  const fewest = Math.min(FEWEST_KEYS, columns);
  const choices = maxima.filter((most, q) => most > 0 && found.seenByRow[q] >= fewest).sort();
  if (rows < FEWEST_ROWS || choices.length < FEWEST_ROWS / 2) return found.largest;
  return choices[Math.floor(SHARE * (choices.length - 1))];
}

/** The largest weight of each row, but for some keys; and what each key gets. */
function lookThrough(weights, rows, columns, without) {
  const [maxima, seenByRow] = [new Float32Array(rows), new Uint32Array(rows)];
  const [sums, seen] = [new Float64Array(columns), new Uint32Array(columns)];
  let largest = 0;
  for (let q = 0, i = 0; q < rows; q += 1) {
    let [most, own] = [0, 0];
    for (let k = 0; k < columns; k += 1, i += 1) {
      const size = Math.abs(weights[i]);
      if (!(size > 0)) continue; // not a number is not, either
      own += 1;
      sums[k] += size;
      seen[k] += 1;
      if (size > most && (without === null || without[k] === 0)) most = size;
    }
    maxima[q] = most;
    seenByRow[q] = own;
    if (most > largest) largest = most;
  }
  return { maxima, seenByRow, sums, seen, largest };
}

/** Keys that the queries which see them rest on, far more than on the middle key: 1 each; null if none. */
function restingKeys({ sums, seen }, rows) {
  const means = sums.map((sum, k) => (seen[k] >= rows / 4 && seen[k] > 0 ? sum / seen[k] : 0));
  const middle = means.slice().sort()[means.length >> 1];
  const [least, times] = RESTING;
  const found = seen.map((_, k) => Number(means[k] > least && means[k] > times * middle));
  const resting = found.reduce((a, b) => a + b, 0);
  return resting > 0 && resting < means.length / 2 ? found : null;
}
