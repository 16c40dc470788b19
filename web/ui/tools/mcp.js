// A client of the Model Context Protocol over streamable HTTP, as far as tools go: initialise, list, call. Requests leave from a
// frame of their own (connector.html), for the page's policy lets it connect to its site alone. Servers are not trusted: what they
// send is bounded in size and time, and is data.

/** @import { Head, Told } from "../../connector.js" */

import { lazy } from "../lazy.js";
import { t } from "../wording.js";

const VERSION = "2025-06-18"; // of the protocol; a server may answer with an older one
const CLIENT = { name: "inpage", version: "0.2" };
const MAX_BYTES = 4_000_000; // characters of an answer, in fact
const MAX_PAGES = 20; // of a list of tools
const MAX_TOOLS = 100;
const MAX_DESCRIPTION = 1000; // characters
const EVENT_END = /\r\n\r\n|\n\n|\r\r/;

/** Milliseconds: until the frame is there, for a list, and for a call. Tests have less. */
export const patience = { frame: 20_000, list: 20_000, call: 120_000 };

/** A tool as a server lists it. @typedef {{ name: string, title: string, description: string, parameters: Record<string, unknown> }} Listed */

/** @typedef {{ result?: any, error?: { code: number, message: string } }} Reply */

/** A fault of a server, in the user's words. */
export class ServerError extends Error {}

/** A server, with its session, which begins with the first request. */
export class McpServer {
  #count = 0;
  #session = "";
  #version = VERSION;
  /** @type {Promise<void> | undefined} */
  #beginning;

  /** @type {string} */
  name;

  /**
   * @param {string} url
   * @param {string} token a bearer token, or nothing
   */
  constructor(url, token) {
    this.url = url;
    this.token = token;
    this.name = new URL(url).host;
  }

  /** Lists the server's tools. @type {(signal?: AbortSignal) => Promise<Listed[]>} */
  async tools(signal) {
    await this.#begin(signal);
    /** @type {Listed[]} */
    const found = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES && found.length < MAX_TOOLS; page++) {
      const { tools, nextCursor } = await this.#ask("tools/list", cursor ? { cursor } : {}, patience.list, signal);
      if (!Array.isArray(tools)) throw this.#isNone();
      found.push(...tools.filter((/** @type {any} */ tool) => typeof tool?.name === "string").map(listed));
      cursor = nextCursor;
      if (typeof cursor !== "string" || !cursor) break;
    }
    return found.slice(0, MAX_TOOLS);
  }

  /** Calls a tool, and gives its result as a text; where the tool says that it failed, throws it. @type {(name: string, given: Record<string, unknown>, signal?: AbortSignal) => Promise<string>} */
  async call(name, given, signal) {
    await this.#begin(signal);
    const { content, structuredContent, isError } = await this.#ask("tools/call", { name, arguments: given }, patience.call, signal);
    const parts = Array.isArray(content) ? content.map(inWords) : [];
    const text = parts.join("\n") || (structuredContent === undefined ? "" : JSON.stringify(structuredContent));
    if (isError) throw new ServerError(text || t`The tool failed, and said nothing more.`);
    return text;
  }

  /** @param {AbortSignal} [signal] */
  #begin(signal) {
    this.#beginning ??= this.#initialise(signal).catch((error) => {
      this.#beginning = undefined;
      throw error;
    });
    return this.#beginning;
  }

  /** @param {AbortSignal} [signal] */
  async #initialise(signal) {
    this.#session = "";
    this.#version = VERSION;
    const found = await this.#request("initialize", { protocolVersion: VERSION, capabilities: {}, clientInfo: CLIENT }, patience.list, signal);
    if (typeof found.protocolVersion !== "string") throw this.#isNone();
    this.#version = found.protocolVersion;
    const { title, name } = found.serverInfo ?? {};
    this.name = String(title || name || this.name).slice(0, 60);
    await this.#post({ method: "notifications/initialized" }, patience.list, signal);
  }

  /** Makes a request; where the server has forgotten the session, in a new one. @type {(method: string, params: object, milliseconds: number, signal?: AbortSignal) => Promise<any>} */
  async #ask(method, params, milliseconds, signal) {
    try {
      return await this.#request(method, params, milliseconds, signal);
    } catch (error) {
      if (!(error instanceof SessionGone)) throw error;
      this.#beginning = undefined;
      await this.#begin(signal);
      return this.#request(method, params, milliseconds, signal);
    }
  }

  /** @type {(method: string, params: object, milliseconds: number, signal?: AbortSignal) => Promise<any>} */
  async #request(method, params, milliseconds, signal) {
    const id = ++this.#count;
    const stop = () => { this.#post({ method: "notifications/cancelled", params: { requestId: id } }, patience.list).catch(() => {}); };
    signal?.addEventListener("abort", stop);
    try {
      const reply = await this.#post({ id, method, params }, milliseconds, signal);
      if (reply?.error) throw new ServerError(t`${this.name} answered with an error: ${String(reply.error.message).slice(0, 1000)}`);
      if (typeof reply?.result !== "object" || !reply.result) throw this.#isNone();
      return reply.result;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Sends a message, and gives the reply to it; nothing where it has no id. @type {(message: { id?: number, method?: string, params?: object, result?: object, error?: object }, milliseconds: number, signal?: AbortSignal) => Promise<Reply | undefined>} */
  async #post(message, milliseconds, signal) {
    const headers = {
      "content-type": "application/json", accept: "application/json, text/event-stream",
      ...(message.method === "initialize" ? {} : { "mcp-protocol-version": this.#version }),
      ...(this.#session && { "mcp-session-id": this.#session }), ...(this.token && { authorization: `Bearer ${this.token}` }),
    };
    const pieces = exchange(this.url, headers, JSON.stringify({ jsonrpc: "2.0", ...message }), milliseconds, signal);
    let text = "";
    /** @type {Head | undefined} */
    let head;
    for await (const told of pieces) {
      if ("fault" in told) throw this.#unreached(told.fault);
      if ("status" in told) {
        head = told;
        this.#check(told, message.method);
        if (message.method === "initialize") this.#session = told.session ?? "";
        if (message.id === undefined || !message.method) return undefined; // it wants no reply
      } else if ("text" in told) {
        text += told.text;
        if (text.length > MAX_BYTES) throw new ServerError(t`${this.name} sent more than ${MAX_BYTES / 1e6} MB.`);
        if (!head?.type.includes("text/event-stream")) continue;
        const events = text.split(EVENT_END);
        text = events.pop() ?? "";
        const reply = events.map(messageOf).flat().find((each) => this.#isReply(each, message.id));
        if (reply) return reply;
      }
    }
    const last = head?.type.includes("text/event-stream") ? messageOf(text) : parsed(text);
    const reply = last.find((each) => this.#isReply(each, message.id));
    if (!reply) throw this.#isNone(head?.type);
    return reply;
  }

  /** Tells a reply to a message; what the server itself asks for is answered. @type {(found: any, id?: number) => boolean} */
  #isReply(found, id) {
    if (found?.method && found.id !== undefined) {
      const answer = found.method === "ping" ? { result: {} } : { error: { code: -32601, message: "Method not found" } };
      this.#post({ id: found.id, ...answer }, patience.list).catch(() => {});
    }
    return found?.id === id && ("result" in found || "error" in found);
  }

  /** Throws where an answer is a refusal. @type {(head: Head, method?: string) => void} */
  #check({ status, type }, method) {
    if (status < 300) return;
    if (status === 404 && this.#session) throw new SessionGone();
    if (status === 401 || status === 403) throw new ServerError(this.token ? t`${this.name} does not accept this token (${status}).` : t`${this.name} wants an access token (${status}).`);
    if (status === 400 && !this.#session && method !== "initialize") {
      throw new ServerError(t`${this.name} began a session, but this page may not read which: the server has to send “Access-Control-Expose-Headers: Mcp-Session-Id”.`);
    }
    if (status >= 500) throw new ServerError(t`${this.name} failed (${status}).`);
    throw this.#isNone(type, status);
  }

  /** @param {"network" | "policy" | "time"} fault */
  #unreached(fault) {
    const { origin, protocol } = new URL(this.url);
    if (fault === "policy") return new ServerError(t`This site’s policy does not let its pages connect to ${origin}: its host sends a Content-Security-Policy for connector.html that forbids it.`);
    if (fault === "time") return new ServerError(t`No answer came from ${origin} in time.`);
    if (!navigator.onLine && !/\/\/(?:localhost|127\.|\[::1\])/.test(origin)) return new ServerError(t`This machine is offline: ${origin} cannot be reached.`);
    if (protocol === "http:" && location.protocol === "https:") return new ServerError(t`No answer came from ${origin}. From a page over https, browsers allow http to this machine alone (http://localhost), and only where a server there answers and allows it.`);
    return new ServerError(t`No answer came from ${origin}. Either nothing runs at this address, or the server does not allow pages of ${location.origin} to ask it (CORS). It has to send “Access-Control-Allow-Origin: ${location.origin}” and “Access-Control-Allow-Headers: Authorization, Content-Type, Mcp-Protocol-Version, Mcp-Session-Id”.`);
  }

  /** @type {(type?: string, status?: number) => ServerError} */
  #isNone(type = "", status = 200) {
    const what = status === 200 ? type.split(";")[0] || t`nothing` : String(status);
    return new ServerError(t`What answers at ${this.url} is no MCP server over streamable HTTP: it answered with ${what}. The address often ends with /mcp.`);
  }
}

/** The server has forgotten the session. */
class SessionGone extends Error {}

/** @param {any} tool @returns {Listed} */
function listed({ name, title, annotations, description, inputSchema }) {
  const isSchema = typeof inputSchema === "object" && inputSchema && !Array.isArray(inputSchema);
  return {
    name, title: String(title || annotations?.title || name).slice(0, 60), description: String(description ?? "").slice(0, MAX_DESCRIPTION),
    parameters: isSchema ? inputSchema : { type: "object", properties: {} },
  };
}

/** Writes a part of a result as a model reads it: of what is no text, that it is there. @param {any} part */
function inWords(part) {
  if (part?.type === "text") return String(part.text);
  if (part?.type === "resource" && typeof part.resource?.text === "string") return part.resource.text;
  if (part?.type === "resource_link") return `${part.name ?? ""}: ${part.uri ?? ""}`;
  return `(${part?.type ?? "something"} ${part?.mimeType ?? ""} that cannot be shown here)`;
}

/** Reads an event of a stream. @param {string} event @returns {any[]} */
const messageOf = (event) => parsed(event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, "")).join("\n"));

/** Reads JSON, of a message or of several; of anything else, none. @param {string} text @returns {any[]} */
function parsed(text) {
  try {
    return [JSON.parse(text)].flat();
  } catch {
    return [];
  }
}

// ---- requests, by way of the frame

const frame = lazy(async () => {
  const element = Object.assign(document.createElement("iframe"), { hidden: true, title: t`Servers of tools`, src: new URL("../../connector.html", import.meta.url).href });
  element.setAttribute("credentialless", "");
  const { promise, resolve, reject } = Promise.withResolvers();
  const late = setTimeout(() => reject(new ServerError(t`This site cannot reach servers of tools: its host does not send the headers for that.`)), patience.frame);
  const hear = (/** @type {MessageEvent} */ { source, data }) => { if (source === element.contentWindow && data === "connector") resolve(undefined); };
  addEventListener("message", hear);
  document.body.append(element);
  try {
    await promise;
    return element;
  } catch (error) {
    element.remove();
    throw error;
  } finally {
    clearTimeout(late);
    removeEventListener("message", hear);
  }
});

/** Sends a request, and gives what comes back until all is there, it takes too long, or nobody wants more. @type {(url: string, headers: Record<string, string>, body: string, milliseconds: number, signal?: AbortSignal) => AsyncGenerator<Told | { fault: "time" }, void, undefined>} */
async function* exchange(url, headers, body, milliseconds, signal) {
  signal?.throwIfAborted();
  const { contentWindow } = await frame();
  const { port1, port2 } = new MessageChannel();
  /** @type {(Told | { fault: "time" })[]} */
  const told = [];
  let wake = () => {};
  const add = (/** @type {Told | { fault: "time" }} */ each) => {
    told.push(each);
    wake();
  };
  const stop = () => wake();
  port1.onmessage = ({ data }) => add(data);
  const late = setTimeout(() => add({ fault: "time" }), milliseconds);
  signal?.addEventListener("abort", stop);
  contentWindow?.postMessage({ url, method: "POST", headers, body }, location.origin, [port2]);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const next = told.shift();
      if (next && "isOver" in next) return;
      if (next) yield next;
      else await new Promise((/** @type {(nothing: void) => void} */ resolve) => { wake = resolve; });
    }
  } finally {
    clearTimeout(late);
    signal?.removeEventListener("abort", stop);
    port1.postMessage("enough");
    setTimeout(() => port1.close()); // once that was sent
  }
}
