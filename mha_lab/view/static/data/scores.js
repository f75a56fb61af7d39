/**
 * What the head scores of mha_lab.maps.scores mean, in a sentence each; all are means over
 * queries and samples. A score unknown here is shown without a sentence.
 */

const SENTENCES = {
  entropy: "How spread out a query's weights are, in nats: 0 for one key, ln S for all alike.",
  confidence: "A query's largest weight: 1 where it is always one key.",
  sparsity: "The share of keys with less than 1 % of the row's largest weight.",
  previous_token: "The weight on the position just before the query.",
  diagonal: "The weight on the query's own position.",
  duplicate_token: "What goes to earlier keys of the query's own token.",
  induction: "What goes to keys that follow an earlier occurrence of the query's token.",
};

export function explain(name) {
  return SENTENCES[name] ?? "";
}
