// Translates the texts that index.html already has. Fetched only for a language other than English.

const ATTRIBUTES = ["aria-label", "placeholder", "title"];
const USERS_TEXT = "[dir=auto], [lang]:not(html), .text, code, pre, script, style"; // not the page's own texts

/** @returns {Promise<void>} once all of the page's HTML is there */
export const parsed = () => new Promise((resolve) => {
  const look = () => { if (document.readyState !== "loading") resolve(); };
  document.addEventListener("readystatechange", look);
  look();
});

/** Says each text and each attribute again. @type {(root: ParentNode & Node, sayAgain: (text: string) => string) => void} */
export function rewrite(root, sayAgain) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (!node.data.trim() || node.parentElement?.closest(USERS_TEXT)) continue;
    const said = around(node.data, sayAgain);
    if (said !== node.data) node.data = said;
  }
  for (const name of ATTRIBUTES) {
    for (const element of root.querySelectorAll(`[${name}]`)) {
      const text = element.getAttribute(name) ?? "";
      const said = sayAgain(text);
      if (said !== text) element.setAttribute(name, said);
    }
  }
  for (const { content } of root.querySelectorAll("template")) rewrite(content, sayAgain);
}

/** Keeps the spaces around. @type {(text: string, sayAgain: (text: string) => string) => string} */
const around = (text, sayAgain) => text.replace(/\S(?:[^]*\S)?/, (words) => sayAgain(words.replace(/\s+/g, " ")));
