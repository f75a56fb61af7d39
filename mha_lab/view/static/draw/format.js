/** Numbers and names as people read them. */

const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|\p{Cs}/gu;
/** What joins the signs of one emoji, or keeps the letters of one word apart, as in Persian. */
const JOINERS = /[\u200c\u200d\ufe0e\ufe0f]/;
const JOINED =
  /^(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|[\ufe0f#*0-9\u20e3]|(?!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})[\p{L}\p{M}])$/u;

/** A token with a sign in place of what cannot be seen, or would turn the text around it. */
export function visible(token) {
  if (/^ +$/.test(token)) return "␣".repeat(token.length);
  return token.replace(INVISIBLE, (sign, offset) => {
    if (JOINERS.test(sign)) {
      const before = [...token.slice(0, offset)].at(-1) ?? "";
      const after = [...token.slice(offset + 1)][0] ?? "";
      if (JOINED.test(before) || JOINED.test(after)) return sign;
    }
    const code = sign.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : "\ufffd";
  });
}

/**
 * The label of a row or column: its token, or its number where there are no tokens.
 *
 * @param at: the position of each row or column in the whole map, where they differ.
 */
export function label(tokens, index, at = null) {
  return tokens ? visible(tokens[index] ?? "") : String(at?.[index] ?? index);
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** At most so many signs as a reader counts them: an emoji of five parts is one. */
export function shorten(text, length) {
  if (text.length <= length) return text;
  const signs = [...graphemes.segment(text)].map(({ segment }) => segment);
  return signs.length <= length ? text : `${signs.slice(0, length - 1).join("")}…`;
}

/** A weight; faint ones as powers of ten, with a true minus sign. */
export function weight(value, digits = 3) {
  if (Number.isNaN(value)) return "not a number";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.001 ? size.toExponential(Math.min(1, digits - 1)) : size.toPrecision(digits);
  return (value < 0 ? "−" : "") + text.replace("e-", "e−");
}

/** A score with three significant digits. */
export function score(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 0.01 && size < 1000 ? size.toPrecision(3) : size.toExponential(1);
  return (value < 0 ? "−" : "") + text.replace("e-", "e−");
}

export function count(number) {
  return number.toLocaleString("en-US");
}

/** "previous_token" as "previous token". */
export function words(name) {
  return visible(name).replaceAll("_", " ");
}

/** Names without the parts in front and behind that all of them share, so that they differ early. */
export function shortNames(names) {
  if (new Set(names).size < 2) return new Map(names.map((name) => [name, name]));
  const parts = names.map((name) => name.split("."));
  const shortest = Math.min(...parts.map((one) => one.length));
  let front = 0;
  while (front < shortest - 1 && parts.every((one) => one[front] === parts[0][front])) front += 1;
  return new Map(
    names.map((name, i) => {
      const kept = parts[i].slice(front);
      // A bare number says nothing: keep the word before it.
      if (front > 0 && /^\d/.test(kept[0])) kept.unshift(parts[i][front - 1]);
      return [name, kept.join(".")];
    }),
  );
}

/** A name without the words that only say that a number follows, for narrow places. */
export function withoutFiller(name) {
  return name.replace(/\.(?:layers?|blocks?|h)(?=\.\d)/g, "");
}

/** What to call a head: its number in the model, which may differ from its place in the map. */
export function headName(map, head) {
  if (head === "mean" || (map && map.heads === null && map.headCount === 1)) return "mean of heads";
  return `head ${map && map.heads ? map.heads[head] : head}`;
}

/** The same, with the head of keys that it reads where several heads read one. */
export function fullHeadName(map, head) {
  const keys = head === "mean" ? undefined : map?.keyHeads?.[head];
  return headName(map, head) + (keys === undefined ? "" : ` · keys ${keys}`);
}

export function fileName(parts, ending) {
  const safe = parts.map((part) => String(part).replace(/[^A-Za-z0-9._-]+/g, "-"));
  return `${safe.filter(Boolean).join("_").slice(0, 150)}.${ending}`;
}

/** Whether a token holds what is searched for. */
export function found(tokens, index, find) {
  return Boolean(tokens && find && tokens[index].toLowerCase().includes(find));
}
