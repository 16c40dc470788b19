// To the clipboard, or in words why not.

import { notify, t } from "./page.js";

/** @param {string} text */
export const copyText = (text) => navigator.clipboard.writeText(text).then(
  () => notify(t`Copied.`),
  () => notify(t`Copying was not allowed: select the text instead.`, { stays: true }),
);
