// Styles that come when something needs them.

import { lazy } from "./lazy.js";

/** Makes a function that fetches a style sheet, by its place below web/, and resolves once it holds. @param {string} path */
export const styleSheet = (path) => lazy(() => {
  const { promise, resolve, reject } = Promise.withResolvers();
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL(`../${path}`, import.meta.url).href });
  link.onload = () => resolve(undefined);
  link.onerror = () => {
    link.remove();
    reject(new Error(path));
  };
  document.head.append(link);
  return promise;
});
