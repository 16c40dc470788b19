// Files that the page gives to the user.

/** Milliseconds that the browser has to fetch one, perhaps after asking the user where to. Tests have less. */
export const patience = { file: 60_000 };

/**
 * A download, which takes no memory for long.
 * @param {string} name
 * @param {string} text
 * @param {string} type
 */
export function giveFile(name, text, type) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), patience.file);
}
