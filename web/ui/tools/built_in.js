// The tools that come with the page. None of them reaches the network: Python runs in a frame apart from everything
// (notebook/runner.js), the others compute here. What models read of them is in English.

/** @import { ChatMessage } from "../chats.js" */
/** @import { Tool, Use } from "./tools.js" */

import { isImage } from "../chats.js";
import { script } from "../lazy.js";
import { patience, Runner } from "../notebook/runner.js";
import { keep, recall } from "../settings/settings.js";
import { t } from "../wording.js";
import { calculate } from "./calculator.js";

const MAX_PRINTED = 200_000; // characters: code that prints for ever is ended
const SHARE = 1 / 4; // of the context, for what a search finds

const loadDocuments = script(() => import("../files/documents.js"));

/** Lists the tools that come with the page, as people know them. */
export const known = () => [
  { id: "python", title: t`Python`, about: t`Runs code in this page, apart from your chats and the network.` },
  { id: "calculator", title: t`Calculator`, about: t`Computes what the model would only guess.` },
  { id: "search_files", title: t`File search`, about: t`Looks things up in the files attached to the chat.` },
  { id: "current_time", title: t`Date and time`, about: t`Says what day and time it is here.` },
];

/** Gives the tools that are on and of use to the last question of a path. @param {ChatMessage[]} path @returns {Tool[]} */
export function builtIn(path) {
  const hasFiles = filesIn(path).length > 0;
  return known().filter(({ id }) => !isOff(id) && (id !== "search_files" || hasFiles)).map(({ id, title }) => ({ id, name: id, title, ...TOOLS[id] }));
}

/** Lists the ids of tools that no chat uses: another page may have kept anything there. @returns {unknown[]} */
function offIds() {
  try {
    const found = JSON.parse(recall("inpageToolsOff") || "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

/** @param {string} id */
export const isOff = (id) => offIds().includes(id);

/** Turns a tool off for all chats, or on again. @type {(id: string, isUnwanted: boolean) => void} */
export function setOff(id, isUnwanted) {
  const others = offIds().filter((each) => each !== id);
  keep("inpageToolsOff", JSON.stringify(isUnwanted ? [...others, id] : others));
}

/** @type {(properties: Record<string, object>, ...required: string[]) => Tool["parameters"]} */
const object = (properties, ...required) => ({ type: "object", properties, required, additionalProperties: false });

/** @type {Record<string, Pick<Tool, "description" | "parameters" | "run">>} */
const TOOLS = {
  python: {
    description: "Run Python code and get what it prints, and the value of its last expression. numpy is there. There is no network, and each run begins with no names.",
    parameters: object({ code: { type: "string", description: "The code" } }, "code"),
    run: runPython,
  },
  calculator: {
    description: "Compute an arithmetic expression, exactly where numbers are whole.",
    parameters: object({ expression: { type: "string", description: "For example (2 + 3) * sqrt(16) ^ 2, or 15% * 80" } }, "expression"),
    run: ({ expression }) => calculate(textOf(expression, "expression")),
  },
  search_files: {
    description: "Find the passages of the user's attached files that say most about something.",
    parameters: object({ query: { type: "string", description: "What to look for, in the words that the files may use" } }, "query"),
    run: searchFiles,
  },
  current_time: {
    description: "Get the current date, weekday and time.",
    parameters: object({ time_zone: { type: "string", description: "An IANA name such as Asia/Tokyo; without one, the user's own" } }),
    run: ({ time_zone: zone }) => timeIn(zone === undefined ? undefined : textOf(zone, "time_zone")),
  },
};

/** @type {(value: unknown, name: string) => string} */
function textOf(value, name) {
  if (typeof value !== "string" || !value.trim()) throw new Error(`${name} must be a text.`);
  return value;
}

/** @param {string} [timeZone] */
function timeIn(timeZone) {
  const options = /** @type {const} */ ({ dateStyle: "full", timeStyle: "long" });
  try {
    const format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone });
    return `${format.format()} (${format.resolvedOptions().timeZone})`;
  } catch {
    throw new Error(`There is no time zone ${timeZone}. Give an IANA name such as Europe/Berlin.`);
  }
}

// ---- files

/** @param {ChatMessage[]} path */
const filesIn = (path) => path.flatMap(({ id, attachments = [] }) => attachments.map((file, at) => ({ ...file, search: file.search ?? `${id} ${at}` }))).filter((file) => !isImage(file));

/** @type {(given: Record<string, any>, use: Use) => Promise<string>} */
async function searchFiles({ query }, { path, signal }) {
  const budget = Math.floor((inpage.loaded?.context ?? 0) * SHARE);
  const { passagesOf } = await loadDocuments();
  return await passagesOf(filesIn(path), textOf(query, "query"), budget, signal) || "Nothing was found. Try other words.";
}

// ---- Python

/** @type {{ runner: Runner, chat: string } | undefined} */
let python; // of one chat: no other finds what its code left behind

function endPython() {
  python?.runner.end();
  python = undefined;
}

/** @type {(given: Record<string, any>, use: Use) => Promise<string>} */
async function runPython({ code }, { answer: { chat }, signal }) {
  const given = textOf(code, "code");
  if (python?.chat !== chat.id) endPython();
  const { runner } = python ??= { runner: new Runner(), chat: chat.id };
  const { promise: over, resolve, reject } = Promise.withResolvers();
  over.catch(() => {}); // it may end before anybody waits for it
  const halt = (/** @type {unknown} */ reason) => {
    endPython();
    reject(reason);
  };
  const stop = () => halt(signal.reason);
  signal.addEventListener("abort", stop);
  let text = "";
  let limit = 0;
  const add = (/** @type {string} */ more) => {
    text += more;
    if (text.length > MAX_PRINTED) halt(new Error(`The code printed more than ${MAX_PRINTED} characters, and was ended.`));
  };
  runner.onTold = ({ started, told, done, failed }) => {
    if (started) limit = setTimeout(() => halt(new Error(`The code ran for more than ${patience.code / 1000} seconds, and was ended. It had printed:\n${text}`)), patience.code);
    if (told) {
      const { printed = "", shown, asks } = JSON.parse(told);
      add(printed);
      if (shown) add(`${text && !text.endsWith("\n") ? "\n" : ""}${shown["text/plain"] ?? ""}\n`);
      if (asks) runner.port.postMessage({ number: asks.number, value: "" }); // nobody is there to answer
    }
    if (failed) halt(new Error(failed));
    if (done) reject(new Error(`${text}${JSON.parse(done).text}`.trim()));
    else if (done === "") resolve(undefined);
  };
  try {
    await Promise.race([runner.ready, over]).catch((error) => {
      endPython();
      throw error;
    });
    runner.port.postMessage({ run: given });
    await over;
  } finally {
    clearTimeout(limit);
    signal.removeEventListener("abort", stop);
  }
  return text.trimEnd() || "The code ran, and printed nothing.";
}
