// The line where JSON goes wrong: browsers say it each in their own way, or not at all.

const TOKEN = /[ \t\r\n]*(?:("(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.]))|([{}[\],:]))/uy;

/** Gives the line of the first part that cannot stand where it does, or of the end, where more is wanted. @param {string} text */
export function faultyLine(text) {
  /** @type {string[]} */
  const open = []; // brackets
  let wanted = "v"; // a value; k: a key; or these signs
  let at = 0; // behind the last part that is sound
  TOKEN.lastIndex = 0;
  for (let found; (found = TOKEN.exec(text)); at = TOKEN.lastIndex) {
    const [, string, word, sign = ""] = found;
    const isKey = !!string && wanted.includes("k");
    const opens = sign === "{" || sign === "[";
    if (!isKey && !wanted.includes(word || string || opens ? "v" : sign)) break;
    if (opens) open.push(sign);
    if (sign === "}" || sign === "]") open.pop();
    const isInObject = open.at(-1) === "{";
    if (opens) wanted = isInObject ? "k}" : "v]";
    else if (isKey) wanted = ":";
    else if (sign === ":") wanted = "v";
    else if (sign === ",") wanted = isInObject ? "k" : "v";
    else wanted = !open.length ? "" : isInObject ? ",}" : ",]";
  }
  const before = text.slice(0, at) + /^[ \t\r\n]*/.exec(text.slice(at))?.[0];
  return before.split("\n").length;
}
