/** How wide texts are drawn. */

export const LABEL_FONT =
  '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace';
const context = document.createElement("canvas").getContext("2d");
const known = new Map();

export function textWidth(text, font = LABEL_FONT) {
  const key = `${font}\n${text}`;
  if (!known.has(key)) {
    if (known.size > 20000) known.clear();
    context.font = font;
    known.set(key, context.measureText(text).width);
  }
  return known.get(key);
}
