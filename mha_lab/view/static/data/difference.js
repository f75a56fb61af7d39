/** One map minus another of the same size: a map of signed weights, 0 where they agree. */

const made = new WeakMap();

/** @returns {object|null} null where the sizes differ. */
export function difference(first, second) {
  if (first.rows !== second.rows || first.columns !== second.columns) return null;
  const known = made.get(first);
  if (known?.second === second) return known.view;
  const view = Object.create(first);
  const heads = new Map();
  const counterpart = (head) => (head === "mean" ? head : Math.min(head, second.headCount - 1));
  Object.assign(view, {
    isDifference: true,
    headCount: Math.min(first.headCount, second.headCount),
    queryTokens: both(first.queryTokens, second.queryTokens),
    keyTokens: both(first.keyTokens, second.keyTokens),
    image: first.image,
    scores: {},
    rowMaxima: new Map(),
    tops: new Map(),
    of(head) {
      if (!heads.has(head)) {
        const [a, b] = [first.of(head), second.of(counterpart(head))];
        heads.set(head, a.map((value, i) => value - b[i]));
      }
      return heads.get(head);
    },
    errorOf: (value) => first.errorOf(value) + second.errorOf(value),
    digitsOf: () => 2,
    top: (head) => view.maximum(head),
    says(head, query, key) {
      const value = view.weight(head, query, key);
      const sign = value > 0 ? "+" : value < 0 ? "−" : "";
      return `${sign}${Math.abs(value).toPrecision(2)}`;
    },
  });
  made.set(first, { second, view });
  return view;
}

/** Labels of both where they differ. */
function both(first, second) {
  if (!first || !second) return first ?? second;
  return first.map((token, i) => (token === second[i] ? token : `${token} | ${second[i]}`));
}
