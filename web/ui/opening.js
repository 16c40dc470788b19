// Files of the user's: told about, and loaded. Fetched when somebody drops or chooses some.

import { markdownIn } from "./markdown.js";
import { loadFrom } from "./model.js";
import { page } from "./page.js";

/**
 * Tells what files hold; a decoder beside its tokenizer can be talked to at once.
 * @param {File[]} files
 */
export async function openFiles(files) {
  const names = files.map(({ name }) => name).join(", ");
  page.about.textContent = `Reading ${names}…`;
  if (!page.opened.open) page.opened.showModal();
  markdownIn(page.about).finish(await loadFrom(files, names) ?? page.loadError.textContent);
}
