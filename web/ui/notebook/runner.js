// A Python of its own, apart from everything: in a frame whose origin is nobody's and whose policy allows no connection (runner.html),
// in a worker there. It gets Pyodide's files, by their names, and nothing else; what it prints and shows comes back.

import { lazy, siteFacts } from "../lazy.js";
import { t } from "../wording.js";

/** Milliseconds: until the frame is there, and for the code itself. Tests have less. */
export const patience = { frame: 20_000, code: 30_000 };

const PLAIN = /^[\w.+-]+$/;

const loadScript = lazy(async () => (await fetched("runner_worker.js")).text());

/** @param {string} path */
async function fetched(path) {
  const response = await fetch(new URL(`../../${path}`, import.meta.url));
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

/** A frame with Python in it, which runs one block after the other until one is stopped. */
export class Runner {
  /** @type {(told: any) => void} */
  onTold = () => {};
  #ended = new AbortController();

  constructor() {
    this.frame = Object.assign(document.createElement("iframe"), { hidden: true, title: t`Code from an answer` });
    this.frame.setAttribute("sandbox", "allow-scripts");
    this.frame.setAttribute("credentialless", "");
    this.frame.src = new URL("../../runner.html", import.meta.url).href;
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }) => (data.wants ? this.#give(data) : this.onTold(data));
    this.ready = this.#connect(port2);
    document.body.append(this.frame);
  }

  /** @param {MessagePort} port */
  async #connect(port) {
    const { promise, resolve, reject } = Promise.withResolvers();
    const late = setTimeout(() => reject(new Error(t`This site cannot run code from answers: its host does not send the headers that this needs.`)), patience.frame);
    addEventListener("message", ({ source, data }) => {
      if (source !== this.frame.contentWindow) return;
      if (data === "runner") resolve(undefined);
      else this.onTold(data);
    }, { signal: this.#ended.signal });
    const [script] = await Promise.all([loadScript(), promise.finally(() => clearTimeout(late))]);
    this.frame.contentWindow?.postMessage({ script }, "*", [port]);
  }

  /** Pyodide's own files, and the runtime's wheel: code cannot ask for anything else. @param {{ wants: string, number: number }} wanted */
  async #give({ wants, number }) {
    const { pyodide, runtime } = await siteFacts();
    const path = wants === "runtime.whl" ? runtime : `${pyodide}${wants}`;
    const response = PLAIN.test(wants) ? await fetched(path).catch(() => null) : null;
    const content = await response?.arrayBuffer() ?? null;
    this.port.postMessage({ gives: number, content }, content ? [content] : []);
  }

  end() {
    this.#ended.abort();
    this.frame.remove();
    this.port.close();
  }
}
