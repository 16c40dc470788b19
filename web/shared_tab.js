// A tab's side of an engine that tabs share: what client.js takes for its worker. web/shared_worker.js is the other.

const NO_FILES = { code: "invalid_request", message: "an engine that tabs share takes no files: give an address", param: "name_or_url" };
const ENDED = { event: "failed", failure: { kind: "crashed", message: "the engine that the tabs share has ended" } };

/** Those who say the same `name` get the same engine. @type {(url: string, name: string) => Worker} */
export function sharedWorker(url, name) {
  const worker = new SharedWorker(url, { type: "module", name });
  const { port } = worker;
  const heard = new EventTarget();
  const hear = (/** @type {object} */ data) => heard.dispatchEvent(new MessageEvent("message", { data }));
  let leave = () => {};
  /** @param {any} message as worker.js takes them */
  function postMessage(message) {
    if (message.outerPage) enter(message.outerPage);
    else if (message.files?.length) queueMicrotask(() => hear({ id: message.id, done: true, json: JSON.stringify({ error: NO_FILES }) }));
    else port.postMessage(message);
  }
  /** The lock is held while this tab is there. @param {string} outerPage */
  function enter(outerPage) {
    const lock = `inpage tab ${Math.random()}`;
    navigator.locks.request(lock, () => {
      port.postMessage({ outerPage, lock });
      return new Promise((/** @type {(nothing: void) => void} */ resolve) => { leave = resolve; });
    });
  }
  port.onmessage = ({ data }) => {
    if (data.event === "alive") navigator.locks.request(name, { mode: "shared" }, () => hear(ENDED)); // it holds it for good
    else hear(data);
  };
  worker.onerror = () => heard.dispatchEvent(new ErrorEvent("error", { message: "the shared worker's script could not be loaded or run" }));
  const terminate = () => {
    leave();
    port.onmessage = null;
  };
  return /** @type {any} */ (Object.assign(heard, { postMessage, terminate }));
}
