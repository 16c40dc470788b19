// The house's rules for JavaScript; types are tsc's part.

import js from "@eslint/js";
import regexp from "eslint-plugin-regexp";
import globals from "globals";

const ENGINE = { inpage: "readonly" };

export default [
  js.configs.recommended,
  {
    rules: {
      "arrow-body-style": "error",
      "eqeqeq": "error",
      "no-console": ["error", { allow: ["warn", "error"] }],
      "no-else-return": "error",
      "no-implicit-coercion": ["error", { allow: ["!!"] }],
      "no-shadow": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  {
    // What runs over texts of strangers must be linear: no part may match in two ways, from many places.
    files: ["web/**"],
    plugins: { regexp },
    rules: {
      "regexp/no-super-linear-backtracking": ["error", { report: "potential" }],
      "regexp/no-super-linear-move": ["error", { report: "potential" }],
    },
  },
  { files: ["web/**", "bench/pages/**"], languageOptions: { globals: { ...globals.browser, ...ENGINE } } },
  {
    files: ["web/*worker.js", "web/sw.js", "web/interpreter.js", "web/bridge.js", "web/bridge/**"],
    languageOptions: { globals: globals.worker },
  },
  { files: ["tools/**", "tests/**", "bench/*.mjs"], languageOptions: { globals: globals.node } },
];
