// What both the page and the rendering worker need to write HTML.

/** Escapes a text for HTML. @param {string} text */
export const escape = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
