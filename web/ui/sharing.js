// Chats for others: as a page that needs nothing else, as Markdown, or in a link. A link carries the chat behind its #, which
// no server is told; what comes by one is shown, and kept only where the user wants it.

/** @import { Chat, ChatMessage } from "./chats.js" */

import { check, readChat } from "./chat_reading.js";
import { fileName, giveFile } from "./chat_files.js";
import { saveChat } from "./chat_storage.js";
import { isImage, lastPartOf, newChat, pathOf, shown, titleOf, wholeOf } from "./chats.js";
import { page } from "./elements.js";
import { emit, on } from "./events.js";
import { jsonBlock } from "./json/block.js";
import { splitReasoning } from "./markdown/reasoning.js";
import { renderWhole } from "./markdown/view.js";
import { copyText, notify } from "./notices.js";
import { givenOf, stepsOf, wordsOf } from "./tools/blocks.js";
import { inWords, language, line, t } from "./wording.js";

const PLAIN = { kind: "text", title: "" }; // as a file
const LINK = /^#chat=([\w-]*)$/;
const MAX_LINK = 16_000; // characters that most programs pass on whole
const MAX_PACKED = 1_000_000; // characters of a link that is opened
const MAX_UNPACKED = 2_000_000; // bytes: what is packed well may be far longer

/** Splits an answer into what was thought and what was said. @param {string} content */
const partsOf = (content) => splitReasoning(content) ?? { thoughts: "", answer: content };

/** Gives what an answer says in the end, as Markdown. @param {ChatMessage} message */
const saidBy = (message) => (message.made?.json === undefined ? lastPartOf(message) : jsonBlock(lastPartOf(message)));

/** @param {ChatMessage} message */
const nameOf = ({ role, made }) => (role === "user" ? t`You` : line(t`Answer`, typeof made?.model === "string" && made.model));

// ---- Markdown

/** Gives the user a chat as Markdown. @param {Chat} chat */
export const exportMarkdown = (chat) => giveFile(fileName(chat, "md"), markdownOf(chat), "text/markdown");

/** Writes what is shown of a chat as Markdown, with its files and without the reasoning. @param {Chat} chat */
function markdownOf(chat) {
  const parts = [`# ${titleOf(chat)}`];
  if (chat.system) parts.push(`> ${chat.system.replace(/\n/g, "\n> ")}`);
  for (const message of pathOf(chat)) parts.push(...message.role === "user" ? [`## ${t`You`}`, ...imagesOf(message), wholeOf(message)].filter(Boolean) : [`## ${t`Answer`}`, ...stepsOf(message).flatMap(stepInMarkdown), partsOf(saidBy(message)).answer.trim()]);
  return `${parts.join("\n\n")}\n`;
}

/** @param {ReturnType<typeof stepsOf>[number]} step */
const stepInMarkdown = ({ said, call }) => [partsOf(said).answer.trim(), `**${wordsOf(call)}**`, ...[givenOf(call), call.result].filter(Boolean).map(inFence)].filter(Boolean);

/** @param {string} text */
const inFence = (text) => wholeOf({ content: "", attachments: [/** @type {any} */ ({ ...PLAIN, text })] }).replace(/^:\n\n/, "");

/** @param {ChatMessage} message */
const imagesOf = ({ attachments = [] }) => attachments.filter(isImage).map(({ name, text }) => `![${name.replace(/[[\]\\]/g, "\\$&")}](${text})`);

// ---- a page that needs nothing else: no script, nothing fetched

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { line-height: 1.25; }
h2 { margin: 2rem 0 0.3rem; font-size: 0.9rem; color: light-dark(#5b616b, #a5abb5); }
.user { padding: 0.1rem 1rem; border-radius: 0.7rem; background: light-dark(#f0f2f5, #25282e); white-space: pre-wrap; }
pre { overflow-x: auto; padding: 0.8rem; border-radius: 0.5rem; background: light-dark(#f6f7f9, #1c1f24); white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; font-size: 0.9em; }
table { display: block; overflow-x: auto; border-collapse: collapse; }
th, td { padding: 0.3rem 0.6rem; border: 1px solid light-dark(#c9ced6, #454b55); }
blockquote { margin-inline: 0; padding-inline-start: 1rem; border-inline-start: 3px solid light-dark(#c9ced6, #454b55); }
img { max-width: 100%; }
details { margin: 0.5rem 0; }
details > :not(summary) { color: light-dark(#5b616b, #a5abb5); white-space: pre-wrap; }
footer { margin-top: 3rem; font-size: 0.85rem; color: light-dark(#5b616b, #a5abb5); }
.hljs-keyword, .hljs-literal, .hljs-built_in { color: light-dark(#8a2be2, #c792ea); }
.hljs-string, .hljs-regexp { color: light-dark(#0a6b2c, #9bd49b); }
.hljs-comment { color: light-dark(#5b616b, #9aa1ac); font-style: italic; }
.hljs-number, .hljs-title { color: light-dark(#0b5cad, #82b1ff); }
@media print { h2 { break-after: avoid; } }
`;

/** Gives the user a chat as a page of HTML. @param {Chat} chat */
export async function exportPage(chat) {
  giveFile(fileName(chat, "html"), await pageOf(chat), "text/html");
}

/** Writes what is shown of a chat as a page of HTML. @param {Chat} chat */
async function pageOf(chat) {
  const made = document.implementation.createHTMLDocument(titleOf(chat));
  made.documentElement.lang = language;
  const [encoding, policy, viewport] = ["meta", "meta", "meta"].map((name) => made.createElement(name));
  encoding.setAttribute("charset", "utf-8");
  Object.assign(policy, { httpEquiv: "Content-Security-Policy", content: POLICY });
  Object.assign(viewport, { name: "viewport", content: "width=device-width" });
  made.head.prepend(encoding, policy, viewport);
  made.head.append(Object.assign(made.createElement("style"), { textContent: STYLE }));
  made.body.append(element("h1", titleOf(chat)));
  if (chat.system) made.body.append(folded(t`System prompt`, chat.system));
  for (const message of pathOf(chat)) made.body.append(...await sectionOf(message));
  made.body.append(Object.assign(element("footer", t`Exported from inpage on ${new Date().toLocaleDateString(language, { dateStyle: "long" })}. Answers of language models may be wrong.`)));
  return `<!doctype html>\n${made.documentElement.outerHTML}\n`;
}

/** @type {(name: string, text: string) => HTMLElement} */
const element = (name, text) => Object.assign(document.createElement(name), { dir: "auto", textContent: text });

/** @type {(summary: string, text: string) => HTMLElement} */
function folded(summary, text) {
  const details = document.createElement("details");
  details.append(element("summary", summary), element("div", text));
  return details;
}

/** @param {ChatMessage} message @returns {Promise<HTMLElement[]>} */
async function sectionOf(message) {
  const heading = element("h2", nameOf(message));
  if (message.role === "user") {
    const files = (message.attachments ?? []).map((file) => (isImage(file) ? Object.assign(new Image(), { src: file.text, alt: file.name }) : folded(line(file.name, inWords(file.bytes)), file.text)));
    const sources = (message.sources?.passages ?? []).map(({ label, text }) => folded(t`Quote: ${label}`, text));
    const text = element("p", message.content);
    text.className = "user";
    return [heading, ...files, ...message.content ? [text] : [], ...sources];
  }
  const steps = await Promise.all(stepsOf(message).map(async ({ said, call }) => [...await rendered(said), folded(wordsOf(call), `${givenOf(call)}\n\n${call.result}`)]));
  return [heading, ...steps.flat(), ...await rendered(saidBy(message))];
}

/** Renders what an answer says, its thoughts folded. @param {string} content */
async function rendered(content) {
  const { thoughts, answer } = partsOf(content);
  const text = document.createElement("div");
  text.append(await renderWhole(answer.trim()));
  return [...thoughts.trim() ? [folded(t`Thoughts`, thoughts.trim())] : [], text];
}

// ---- a link

/** Copies a link that has the chat in it, or tells why there is none. @param {Chat} chat */
export async function copyLink(chat) {
  const link = new URL(`#chat=${await packedChat(chat)}`, new URL("./", location.href)).href;
  if (link.length > MAX_LINK) return notify(t`This chat is too long for a link: export it as a file instead.`);
  await copyText(link);
}

/** Packs what is shown of a chat: what a reader sees, and nothing of how it was made. @param {Chat} chat */
async function packedChat(chat) {
  const messages = pathOf(chat).map(({ role, content, attachments, calls, made }) => ({
    role, content, ...(calls ? { calls } : {}), ...(made?.model ? { model: made.model } : {}), ...(made?.json === undefined ? {} : { json: made.json }),
    ...(attachments ? { attachments: attachments.map(({ name, title, kind, text, bytes }) => ({ name, title, kind, text, bytes })) } : {}),
  }));
  const text = JSON.stringify({ title: titleOf(chat), system: chat.system, json: chat.json.isOn ? chat.json : undefined, messages });
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Unpacks a chat, whoever packed it; throws in words. @param {string} text */
async function unpackedChat(text) {
  check(text.length <= MAX_PACKED, t`it is too long`);
  /** @type {any} */
  let found;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
    found = JSON.parse(await unpackedText(bytes));
  } catch (error) {
    check(!(error instanceof RangeError), t`it is too long`);
    check(false, t`it is damaged, or was not copied whole`);
  }
  check(Array.isArray(found?.messages) && found.messages.length > 0, t`there is no chat in it`);
  /** @type {any[]} */
  const messages = found.messages;
  const plain = messages.map((message, at) => ({
    ...(typeof message?.model === "string" ? { made: { model: message.model.slice(0, 200), ...(message.json === undefined ? {} : { json: message.json }) }, settings: {} } : {}),
    id: `linked-${at}`, born: at + 1, role: message?.role, content: message?.content, parent: at ? `linked-${at - 1}` : "",
    ...(Array.isArray(message?.attachments) ? { attachments: message.attachments } : {}), calls: message?.calls,
  }));
  const { title, system, json, messages: read } = readChat({ title: found.title, system: found.system, json: found.json, messages: plain }, t`the chat`);
  for (const [at, message] of read.entries()) {
    message.id = crypto.randomUUID();
    message.parent = read[at - 1]?.id ?? "";
  }
  return { ...newChat(), title, system, json, messages: read, temporary: true };
}

/** Unpacks a text, or throws RangeError where it is too long. @param {Uint8Array<ArrayBuffer>} bytes */
async function unpackedText(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, length] = ["", 0];
  for (let part; !(part = await reader.read()).done;) {
    length += part.value.length;
    if (length > MAX_UNPACKED) throw new RangeError();
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}

/** Shows the chat that a link carries, or tells what is wrong with it. @param {string} hash */
export async function openLink(hash) {
  history.replaceState(history.state, "", location.pathname + location.search); // a reload does not ask again
  try {
    const chat = await unpackedChat(LINK.exec(hash)?.[1] ?? "");
    linked.add(chat);
    emit("chatwanted", chat);
  } catch (error) {
    notify(t`The chat in this link cannot be shown: ${/** @type {Error} */ (error).message}.`, { stays: true });
  }
}

/** @type {WeakSet<Chat>} */
const linked = new WeakSet(); // chats that are not kept yet

on("chatshown", () => {
  page.linked.hidden = !linked.has(shown);
  if (linked.has(shown)) page.temporary.hidden = true; // the other note says it
});
page.keepLinked.onclick = () => {
  linked.delete(shown);
  delete shown.temporary;
  saveChat(shown);
  emit("chatwanted", shown);
};
