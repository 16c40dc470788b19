// A visit to a browser that keeps a model: it is loaded without a question. Fetched when there is one.

import { loadFrom, models } from "./model.js";
import { recall } from "./page.js";

/** The model of the last visit, or else the first that is whole. */
export function loadStored() {
  const here = models.filter(({ stored }) => stored);
  const { name } = here.find((model) => model.name === recall("inpageModel")) ?? here[0] ?? {};
  if (name && !inpage.loaded && !inpage.loads) loadFrom(name, name);
}
