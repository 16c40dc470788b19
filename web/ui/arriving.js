// A visit to a browser that keeps a model: it is loaded without a question. Fetched when there is one.

import { loadFrom, models } from "./model.js";
import { recall } from "./page.js";

/** The model of the last visit, or else the first that is whole. */
export function loadStored() {
  const here = models.filter(({ stored }) => stored);
  const last = here.find(({ path }) => path === recall("inpageModel")) ?? here[0];
  if (last && !inpage.loaded && !inpage.loads) loadFrom(last.path, last.name);
}
