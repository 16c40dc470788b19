// The MCP servers that the user added: kept in this browser, a token only where the user wants that, and asked for their tools when an
// answer or the dialog needs them. Their rows stand in the dialog about tools.

/** @import { Listed } from "./mcp.js" */
/** @import { Tool } from "./tools.js" */

import { copyOf, page, partOf } from "../elements.js";
import { notify } from "../notices.js";
import { faultOf, t } from "../wording.js";
import { isOff, setOff } from "./built_in.js";
import { McpServer } from "./mcp.js";

/** @typedef {{ url: string, name: string, token?: string }} Kept a server as it is kept */

const KEY = "inpageServers";
const MAX_SERVERS = 20;
const NAME = /[^\w.-]+/g; // what a tool's name must not have

const { serverError, serverForm, serverRows, serverStatus, serverToken, serverTokenKept, serverUrl } = page;

/** @type {Map<string, { server: McpServer, tools: Promise<Listed[]> }>} */
const connected = new Map(); // by their addresses
/** @type {Map<string, string>} */
const tokens = new Map(); // of this visit

/** Another tab may have changed it, and anything may stand there. @returns {Kept[]} */
function servers() {
  try {
    const { version, list } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const isKept = (/** @type {any} */ each) => typeof each?.url === "string" && /^https?:/.test(each.url) && URL.canParse(each.url) && typeof each.name === "string";
    return version === 1 && Array.isArray(list) ? list.filter(isKept).slice(0, MAX_SERVERS) : [];
  } catch {
    return [];
  }
}

/** @param {Kept[]} list */
function keepServers(list) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ version: 1, list }));
  } catch {
    notify(t`The server was not saved: this browser's storage is full or turned off.`, { stays: true });
  }
}

/** Asks a server for its tools, once in a visit unless that failed. @param {Kept} kept */
function listOf({ url, token = "" }) {
  const known = connected.get(url);
  if (known) return known;
  const server = new McpServer(url, tokens.get(url) ?? token);
  const tools = server.tools();
  const added = { server, tools };
  connected.set(url, added);
  tools.catch(() => connected.delete(url));
  return added;
}

/**
 * Gives the tools of all servers, or of those that are known by now, as far as these answer and the user wants them.
 * @type {(taken: string[], options?: { areKnown?: boolean }) => Promise<Tool[]>}
 */
export async function serverTools(taken, { areKnown = false } = {}) {
  const names = new Set(taken);
  /** @type {Tool[]} */
  const found = [];
  const asked = servers().filter(({ url }) => !areKnown || connected.has(url));
  const lists = await Promise.allSettled(asked.map((kept) => listOf(kept).tools));
  for (const [at, kept] of asked.entries()) {
    const list = lists[at];
    if (list.status === "rejected" && !areKnown) notify(t`The tools of ${kept.name} are missing: ${faultOf(list.reason)}`);
    else if (list.status === "fulfilled") found.push(...list.value.filter(({ name }) => !isOff(idOf(kept, name))).map((tool) => toolOf(kept, tool, names)));
  }
  return found;
}

/** Names a tool for permissions. @type {(kept: Kept, name: string) => string} */
const idOf = ({ url }, name) => `${url} ${name}`;

/** Makes a server's tool one that models can call, under a name that no other has. @type {(kept: Kept, tool: Listed, names: Set<string>) => Tool} */
function toolOf(kept, { name, title, description, parameters }, names) {
  const plain = name.replace(NAME, "_").slice(0, 60) || "tool";
  let own = plain;
  for (let number = 2; names.has(own); number++) own = `${plain}_${number}`;
  names.add(own);
  const { server } = listOf(kept);
  return { id: idOf(kept, name), name: own, title: t`${title} of ${server.name}`, description, parameters, run: (given, { signal }) => server.call(name, given, signal) };
}

// ---- in the dialog

/** Shows the servers, with their tools as soon as they are known. */
export function showServers() {
  serverRows.replaceChildren(...servers().map(rowOf));
}

/** @param {Kept} kept */
function rowOf(kept) {
  const row = copyOf(page.serverRow);
  const [name, facts, fault] = ["name", "facts", "fault"].map((part) => partOf(row, part));
  name.textContent = kept.name;
  partOf(row, "where").textContent = kept.url;
  facts.textContent = t`Asking for its tools…`;
  partOf(row, "again").onclick = () => {
    connected.delete(kept.url);
    row.replaceWith(rowOf(kept));
  };
  partOf(row, "remove").onclick = () => {
    connected.delete(kept.url);
    tokens.delete(kept.url);
    keepServers(servers().filter(({ url }) => url !== kept.url));
    showServers();
    serverUrl.focus();
  };
  listOf(kept).tools.then((tools) => {
    const { length: count } = tools;
    facts.textContent = t`${count} tool|${count} tools`;
    partOf(row, "list").replaceChildren(...tools.map((tool) => tickOf(idOf(kept, tool.name), tool.title, tool.description)));
  }, (error) => {
    facts.textContent = "";
    fault.textContent = faultOf(error);
  });
  return row;
}

/** Makes a row that turns a tool on or off. @type {(id: string, title: string, about: string) => HTMLElement} */
export function tickOf(id, title, about) {
  const row = copyOf(page.toolRow);
  const box = /** @type {HTMLInputElement} */ (partOf(row, "box"));
  box.checked = !isOff(id);
  box.onchange = () => setOff(id, !box.checked);
  partOf(row, "name").textContent = title;
  partOf(row, "about").textContent = about;
  return row;
}

serverForm.onsubmit = async (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const url = new URL(serverUrl.value.trim()).href;
  const token = serverToken.value.trim();
  serverError.textContent = "";
  serverStatus.textContent = t`Asking ${new URL(url).host}…`;
  connected.delete(url);
  if (token) tokens.set(url, token);
  const { server, tools } = listOf({ url, name: "" });
  try {
    await tools;
    const kept = { url, name: server.name, ...(token && serverTokenKept.checked ? { token } : {}) };
    keepServers([...servers().filter((each) => each.url !== url), kept]);
    serverForm.reset();
    showServers();
  } catch (error) {
    serverError.textContent = faultOf(/** @type {any} */ (error));
  }
  serverStatus.textContent = "";
};
