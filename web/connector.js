// The script of connector.html: sends the requests that the page's MCP client (ui/tools/mcp.js) asks for, and gives it what comes
// back, piece by piece. It decides nothing, has no state, and listens to the page around it alone.

/**
 * A request, with the port that hears the answer.
 * @typedef {object} Asked
 * @property {string} url
 * @property {"POST" | "GET" | "DELETE"} method
 * @property {Record<string, string>} headers
 * @property {string} [body]
 */

/** @typedef {{ status: number, type: string, session: string | null }} Head how an answer begins */
/** @typedef {Head | { text: string } | { isOver: true } | { fault: "network" | "policy" }} Told */

/** @type {Set<string>} */
const refused = new Set(); // origins that a policy of this site forbids

addEventListener("securitypolicyviolation", ({ blockedURI }) => refused.add(originOf(blockedURI)));

/** @param {string} url */
function originOf(url) {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}

/** @type {(asked: Asked, port: MessagePort) => Promise<void>} */
async function send({ url, ...asked }, port) {
  const tell = (/** @type {Told} */ told) => port.postMessage(told);
  const stopping = new AbortController();
  port.onmessage = () => stopping.abort(); // the page wants no more of it
  try {
    const response = await fetch(url, { ...asked, signal: stopping.signal, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" });
    tell({ status: response.status, type: response.headers.get("content-type") ?? "", session: response.headers.get("mcp-session-id") });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let part; reader && !(part = await reader.read()).done;) tell({ text: part.value });
    tell({ isOver: true });
  } catch {
    await new Promise((resolve) => { setTimeout(resolve); }); // what a policy forbids is told in a task of its own
    tell({ fault: refused.has(originOf(url)) ? "policy" : "network" });
  }
}

addEventListener("message", ({ source, origin, data, ports: [port] }) => {
  if (source === parent && origin === location.origin && port) send(data, port);
});
parent.postMessage("connector", location.origin);

export {}; // a module: what is named here is its own
