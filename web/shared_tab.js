// A tab's side of an engine that tabs share: what client.js takes for its worker. web/shared_worker.js is the other.

const NO_FILES = { code: "invalid_request", message: "an engine that tabs share takes no files: give an address", param: "name_or_url" };
const ENDED = { event: "failed", failure: { kind: "crashed", message: "the engine that the tabs share has ended" } };

/** Those who say the same `name` get the same engine. @type {(url: string, name: string) => Worker} */
export function sharedWorker(url, name) {
  const heard = new EventTarget();
  const hear = (/** @type {object} */ data) => heard.dispatchEvent(new MessageEvent("message", { data }));
  const fail = (/** @type {string} */ message) => heard.dispatchEvent(new ErrorEvent("error", { message }));
  /** @type {PromiseWithResolvers<MessagePort>} */
  const { promise: entered, resolve: enteredBy } = Promise.withResolvers();
  /** @type {PromiseWithResolvers<void>} */
  const { promise: left, resolve: leave } = Promise.withResolvers();
  let isLeft = false;
  /** @param {any} message as worker.js takes them */
  function postMessage(message) {
    if (message.outerPage) enter(message);
    else if (message.files?.length) queueMicrotask(() => hear({ id: message.id, done: true, json: JSON.stringify({ error: NO_FILES }) }));
    else entered.then((port) => port.postMessage(message));
  }
  /** An engine that closes has the door to itself until it has ended: whoever comes meanwhile gets the next one. @param {{ outerPage: string, device: string | null }} options */
  function enter({ outerPage, device }) {
    navigator.locks.request(`door of ${name}`, { mode: "shared" }, async () => {
      const lock = `inpage tab ${Math.random()}`; // held while this tab is there
      await new Promise((held) => { navigator.locks.request(lock, () => { held(null); return left; }); });
      if (isLeft) return;
      connect({ outerPage, device, lock });
      await Promise.race([entered, left]);
    }).catch(({ message }) => fail(message));
  }
  /** @param {{ outerPage: string, device: string | null, lock: string }} greeting */
  function connect(greeting) {
    const worker = new SharedWorker(url, { type: "module", name });
    const { port } = worker;
    worker.onerror = () => fail("the shared worker's script could not be loaded or run");
    port.onmessage = ({ data }) => {
      if (data.event === "entered") enteredBy(port);
      else if (data.event === "alive") navigator.locks.request(name, { mode: "shared" }, () => hear(ENDED)); // it holds it for good
      else hear(data);
    };
    left.then(() => { port.onmessage = null; });
    port.postMessage(greeting);
  }
  const terminate = () => {
    isLeft = true;
    leave();
  };
  return /** @type {any} */ (Object.assign(heard, { postMessage, terminate }));
}
