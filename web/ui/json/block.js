// JSON as a block of code that people can read, also where it ends too early: each part stays as it was written.

const PART = /"(?:[^"\\]|\\[^])*"?|[{}[\],:]|[^\s{}[\],:"]+/g; // a text, a sign, or a number or word
const [OPENERS, CLOSERS] = [["{", "["], ["}", "]"]];
const MAX_DEPTH = 32; // as the engine writes it: deeper lines begin no further to the right

/** Gives JSON, or its beginning, with a line for each value. @param {string} text */
export function indented(text) {
  let [written, depth, last] = ["", 0, ""];
  for (const [part] of text.matchAll(PART)) {
    const isEnd = CLOSERS.includes(part);
    if (isEnd) depth--;
    if (last === "," || OPENERS.includes(last) !== isEnd) written += `\n${"  ".repeat(Math.min(Math.max(depth, 0), MAX_DEPTH))}`;
    else if (last === ":") written += " ";
    written += part;
    if (OPENERS.includes(part)) depth++;
    last = part;
  }
  return written;
}

/** Gives JSON as Markdown; nothing where there is none yet. @param {string} text */
export const jsonBlock = (text) => text.trim() && `\`\`\`json\n${indented(text)}\n\`\`\``;
