// What the rendering worker has drawn lately: text that grows is shown again and again, without a flicker.

const MAX_CHARACTERS = 2_000_000; // characters of HTML

/** @type {Map<string, string>} */
const known = new Map(); // the newest are last
let characters = 0;

/** @param {string} name */
export const remembered = (name) => known.get(name);

/** @type {(name: string, html: string) => string} */
export function remember(name, html) {
  characters += html.length - (known.get(name)?.length ?? 0);
  known.delete(name);
  known.set(name, html);
  for (const [oldest, { length }] of known) {
    if (characters <= MAX_CHARACTERS) break;
    known.delete(oldest);
    characters -= length;
  }
  return html;
}
