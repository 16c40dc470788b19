// What the page has rendered in a worker, one text after the other. A text that takes too long ends its worker, and
// is shown as it was written; the next text gets a new worker. Fetched when something is to be rendered there.

/** @import { Queued, RenderInWorker } from "./rendered.js" */

import { siteFacts } from "./page.js";

/** Milliseconds: for a library to arrive, for one text, and for all that wait at once. Tests have less. */
export const patience = { arrival: 30_000, text: 2000, all: 10_000 };

/** @type {Worker | undefined} */
let worker;
/** @type {Queued[]} */
const queue = [];
let isWorking = false;

/**
 * Renders a text, unless nobody wants it any more when its turn comes. Rejects where it cannot be rendered.
 * @type {RenderInWorker}
 */
export function renderInWorker(kind, job, isWanted = () => true) {
  const { promise, resolve, reject } = Promise.withResolvers();
  queue.push({ kind, job, isWanted, resolve, reject });
  if (!isWorking) {
    isWorking = true;
    queueMicrotask(work); // by then the element that waits for it is in the page
  }
  return promise;
}

async function work() {
  let spent = 0;
  for (let next; (next = queue.shift());) {
    if (!next.isWanted() || spent > patience.all) {
      next.reject(new RangeError());
      continue;
    }
    const began = performance.now();
    await render(next).then(next.resolve, next.reject);
    spent += performance.now() - began;
  }
  isWorking = false;
}

/**
 * Has the worker render one text, and ends it when that takes too long.
 * @param {Queued} queued
 */
async function render({ kind, job }) {
  const { vendor } = await siteFacts();
  const { promise, resolve, reject } = Promise.withResolvers();
  const end = () => {
    worker?.terminate();
    worker = undefined;
    reject(new RangeError());
  };
  const mine = worker ??= new Worker(new URL("../render_worker.js", import.meta.url), { type: "module" });
  let timer = setTimeout(end, patience.arrival);
  mine.onerror = end;
  mine.onmessage = ({ data: { state, result } }) => {
    if (state === "started") {
      clearTimeout(timer);
      timer = setTimeout(end, patience.text);
    } else if (state === "done") resolve(result);
    else if (state === "lost") end(); // a new worker fetches it again
    else reject(new RangeError());
  };
  mine.postMessage({ kind, job, vendor: new URL(vendor, document.baseURI).href });
  return promise.finally(() => clearTimeout(timer));
}
