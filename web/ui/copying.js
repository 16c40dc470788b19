// To the clipboard, or in words why not.

import { notify } from "./page.js";

/** @param {string} text */
export const copyText = (text) => navigator.clipboard.writeText(text).then(
  () => notify("Copied."),
  () => notify("Copying was not allowed: select the text instead.", { stays: true }),
);
