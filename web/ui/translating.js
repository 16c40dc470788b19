// The page in another language than it has: its table, what stands in the page already, and texts of the engine's.
// Fetched for those who want one.

const ATTRIBUTES = ["aria-label", "placeholder", "title"];
const SOMEBODYS = "[dir=auto], [lang]:not(html), .text, code, pre, script, style"; // not the page's own words
const NUMBER = String.raw`\d(?:[\d.,'’\s]*\d)?`;
const MAX_AMOUNT = 200; // characters: a pattern of several numbers takes a power of their length
const MAX_TOLD = 4000; // characters: longer texts are nobody's but a stranger's
const UNIT = " (?:[kMGT]B|s|min|h|%)(?:/s)?"; // the same in every language
const QUANTITY = new RegExp(`^(${NUMBER})(${UNIT})?$`);

/** @typedef {Record<string, string>} Table */
/** @typedef {{ words: Table, said: Table, amounts: Table }} Tables as a file of words/ has them */
/** @typedef {[text: string, other: string, isAmount: boolean]} Entry whose values are amounts, or anything */


/** @type {Tables} */
const ENGLISH = { words: {}, said: {}, amounts: {} };
let spoken = { tag: "en", tables: ENGLISH };

/**
 * Translates what is there; gives what translates the rest.
 * @param {string} tag
 */
export async function translate(tag) {
  const [name] = tag.split("-");
  /** @type {Tables} */
  const tables = name === "en" ? ENGLISH : await import(`./words/${name}.js`);
  const back = teller(entriesOf(spoken.tables).map(([english, other, isAmount]) => [other, english, isAmount]), spoken.tag, "en");
  const forth = teller(entriesOf(tables), "en", tag);
  await parsed();
  rewrite(document, (text) => forth(back(text)));
  spoken = { tag, tables };
  return { table: tables.words, retell: forth };
}

/** @returns {Promise<void>} once all of the page's HTML is there */
const parsed = () => new Promise((resolve) => {
  const look = () => { if (document.readyState !== "loading") resolve(); };
  document.addEventListener("readystatechange", look);
  look();
});

/** @type {(root: ParentNode & Node, tell: (text: string) => string) => void} */
function rewrite(root, tell) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (!node.data.trim() || node.parentElement?.closest(SOMEBODYS)) continue;
    const told = around(node.data, tell);
    if (told !== node.data) node.data = told;
  }
  for (const name of ATTRIBUTES) {
    for (const element of root.querySelectorAll(`[${name}]`)) {
      const text = element.getAttribute(name) ?? "";
      const told = tell(text);
      if (told !== text) element.setAttribute(name, told);
    }
  }
  for (const { content } of root.querySelectorAll("template")) rewrite(content, tell);
}

/** Keeps the spaces around. @type {(text: string, tell: (text: string) => string) => string} */
const around = (text, tell) => text.replace(/\S(?:[^]*\S)?/, (words) => tell(words.replace(/\s+/g, " ")));

/** @param {Tables} tables */
const entriesOf = ({ words, said, amounts }) => [...pairs({ ...words, ...said }, false), ...pairs(amounts, true)];

/**
 * Each form of a plural by itself.
 * @param {Table} table
 * @param {boolean} isAmount
 */
const pairs = (table, isAmount) => Object.entries(table).flatMap(([english, other]) => {
  const [ours, theirs] = [english.split("|"), other.split("|")];
  return ours.map((form, at) => /** @type {Entry} */ ([form, theirs[at], isAmount]));
});

/**
 * Finds a text among those of one language, values and all, and tells it in the other; one that is not there stays.
 * @type {(entries: Entry[], from: string, to: string) => (text: string) => string}
 */
function teller(entries, from, to) {
  const whole = new Map(entries.map(([text, other]) => [text, other]));
  // The longest say most.
  const patterns = entries.filter(([text]) => text.includes("{")).sort(([a], [b]) => b.length - a.length).map(patternOf);
  const [number, isSame] = [numbers(from, to), from.split("-")[0] === to.split("-")[0]];

  /** @type {(text: string) => string} */
  function one(text) {
    const known = whole.get(text) ?? number(text);
    if (known !== undefined) return known;
    for (const { valuesIn, other, order } of patterns) {
      const found = valuesIn(text);
      if (found) return other.replace(/{(\d)}/g, (_, at) => tell(found[order.indexOf(at)] ?? ""));
    }
    const parts = text.split(", ");
    const told = parts.length > 1 ? parts.map(one) : parts;
    return told.every((each, at) => each !== parts[at]) ? told.join(", ") : text;
  }

  /** @type {(text: string) => string} */
  const tell = (text) => (isSame || text.length > MAX_TOLD ? text : whole.get(text) ?? text.split(" · ").map(one).join(" · "));
  return tell;
}

/** @param {Entry} entry */
const patternOf = ([text, other, isAmount]) => ({
  valuesIn: isAmount ? amountsBetween(text.split(/{\d}/)) : valuesBetween(text.split(/{\d}/)),
  other,
  order: [...text.matchAll(/{(\d)}/g)].map(([, at]) => at),
});

/**
 * Finds the amounts that stand between the pieces of a text.
 * @param {string[]} pieces
 */
function amountsBetween(pieces) {
  const escaped = pieces.map((piece) => piece.replace(/[.*+?^$()[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`^${escaped.join(`(${NUMBER}(?:${UNIT}| \\p{L}{2,5})?)`)}$`, "u");
  return (/** @type {string} */ text) => (text.length > MAX_AMOUNT ? undefined : pattern.exec(text)?.slice(1));
}

/**
 * Finds what stands between the pieces of a text, whatever it is. Each is as short as can be: a pattern would do the
 * same, and take a power of the text's length where it fails.
 * @param {string[]} pieces
 */
const valuesBetween = ([first, ...pieces]) => (/** @type {string} */ text) => {
  const last = pieces.at(-1) ?? "";
  if (!text.startsWith(first) || !text.endsWith(last)) return undefined;
  const end = text.length - last.length;
  const values = [];
  let at = first.length;
  for (const piece of pieces.slice(0, -1)) {
    const next = text.indexOf(piece, at + 1);
    if (next < 0) return undefined;
    values.push(text.slice(at, next));
    at = next + piece.length;
  }
  return at < end ? [...values, text.slice(at, end)] : undefined;
};

/**
 * A quantity as the other language writes it; undefined where it is something else.
 * @param {string} from
 * @param {string} to
 */
function numbers(from, to) {
  const parts = new Intl.NumberFormat(from).formatToParts(1234567.8);
  const [group, point] = ["group", "decimal"].map((type) => parts.find((part) => part.type === type)?.value ?? "");
  return (/** @type {string} */ text) => {
    const [, digits, unit = ""] = text.length > MAX_AMOUNT ? [] : QUANTITY.exec(text) ?? [];
    if (!digits) return undefined;
    const fraction = digits.split(point)[1]?.length ?? 0;
    const value = Number(digits.replaceAll(group, "").replace(point, "."));
    const shown = value.toLocaleString(to, { minimumFractionDigits: fraction, maximumFractionDigits: fraction });
    return Number.isNaN(value) ? undefined : `${shown}${unit}`;
  };
}
