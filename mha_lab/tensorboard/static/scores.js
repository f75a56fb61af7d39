/** What the recorder's head scores mean, in a sentence; a score unknown here is shown without. */

const SENTENCES = {
  entropy: "How spread out a query's weights are, in nats: 0 is one key, ln(S) is all alike.",
  confidence: "A query's largest weight, averaged over queries: 1 is always one key.",
  sparsity: "The share of weights that are next to nothing.",
  previous_token: "The weight on the key just before the query.",
  diagonal: "The weight on the query's own position.",
  duplicate_token: "The weight on earlier occurrences of the query's token.",
  induction: "The weight on keys that follow an earlier occurrence of the query's token.",
};

export function explain(name) {
  return SENTENCES[name] ?? "";
}
