// Arithmetic for models: an expression is parsed and computed here, nothing is evaluated as code. Whole numbers are exact, up
// to a length; others are as precise as JavaScript's. Its faults are for models, so they are in English.

/** @typedef {bigint | number} Value whole numbers are bigints, as long as they can be */

const MAX_LENGTH = 1000; // characters of an expression
const MAX_DEPTH = 50; // parentheses in parentheses
const MAX_BITS = 4096; // of a whole number: about 1,200 digits
const MAX_FACTORIAL = 400; // its factorial has fewer bits than that
const DIGITS = 15; // of a result that is not whole

const TOKEN = /\s*(?:(\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|([a-z]\w*)|(\*\*|[-+*/%^!(),])|(.))/giy;
const ALIASES = /** @type {Record<string, string>} */ ({ "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-" });

/** @type {Record<string, Value>} */
const CONSTANTS = { e: Math.E, pi: Math.PI, tau: 2 * Math.PI };

/** @type {Record<string, (...given: number[]) => number>} */
const FUNCTIONS = {
  acos: Math.acos, asin: Math.asin, atan: Math.atan, atan2: Math.atan2, cbrt: Math.cbrt, cos: Math.cos, cosh: Math.cosh, exp: Math.exp,
  hypot: Math.hypot, ln: Math.log, log10: Math.log10, log2: Math.log2, sin: Math.sin, sinh: Math.sinh, sqrt: Math.sqrt, tan: Math.tan, tanh: Math.tanh,
  degrees: (x) => x * 180 / Math.PI,
  log: (x, base = Math.E) => (base === 10 ? Math.log10(x) : Math.log(x) / Math.log(base)),
  radians: (x) => x * Math.PI / 180,
};

/** Those that keep whole numbers whole. @type {Record<string, (...given: Value[]) => Value>} */
const EXACT = {
  abs: (x) => (x < 0 ? minus(x) : x),
  ceil: (x) => rounded(x, Math.ceil),
  factorial,
  floor: (x) => rounded(x, Math.floor),
  max: (...given) => given.reduce((most, x) => (x > most ? x : most)),
  min: (...given) => given.reduce((least, x) => (x < least ? x : least)),
  round: (x, places = 0n) => (Number(places) ? Number(Number(x).toFixed(Math.min(Math.max(Number(places), 0), DIGITS))) : rounded(x, Math.round)),
  trunc: (x) => rounded(x, Math.trunc),
};

/** Computes an expression such as `2 * (3 + sqrt(16))`, or throws in words. @param {string} expression */
export function calculate(expression) {
  if (expression.length > MAX_LENGTH) throw new Error(`The expression is longer than ${MAX_LENGTH} characters.`);
  const parser = new Parser(expression.replace(/[×·÷−–]/g, (sign) => ALIASES[sign]));
  const value = parser.sum();
  parser.end();
  return typeof value === "bigint" ? String(value) : String(Number(value.toPrecision(DIGITS)));
}

/** A parser that computes as it reads, with the usual precedence. */
class Parser {
  /** @type {string[]} */
  #tokens = [];
  #at = 0;
  #depth = 0;

  /** @param {string} text */
  constructor(text) {
    for (const [, number, name, operator, other] of text.trim().matchAll(TOKEN)) {
      if (other) throw new Error(`There is no operator ${other}. Use + - * / % ^ and parentheses.`);
      this.#tokens.push(number ?? name?.toLowerCase() ?? operator);
    }
  }

  /** @param {string[]} wanted */
  #took(...wanted) {
    const token = this.#tokens[this.#at];
    if (!wanted.includes(token)) return "";
    this.#at++;
    return token;
  }

  end() {
    if (this.#at < this.#tokens.length) throw new Error(`Nothing can follow here: ${this.#tokens.slice(this.#at).join(" ")}`);
  }

  /** @returns {Value} */
  sum() {
    let value = this.#product();
    for (let sign; (sign = this.#took("+", "-"));) {
      const other = this.#product();
      value = sign === "+" ? plus(value, other) : plus(value, minus(other));
    }
    return value;
  }

  /** @returns {Value} */
  #product() {
    let value = this.#signed();
    for (let sign; (sign = this.#took("*", "/", "%"));) {
      const other = this.#signed();
      value = sign === "*" ? times(value, other) : sign === "/" ? over(value, other) : rest(value, other);
    }
    return value;
  }

  /** @returns {Value} */
  #signed() {
    if (++this.#depth > MAX_DEPTH) throw new Error("The expression is nested too deeply.");
    const sign = this.#took("-", "+");
    const value = sign ? this.#signed() : this.#power();
    this.#depth--;
    return sign === "-" ? minus(value) : value;
  }

  /** @returns {Value} */
  #power() {
    const base = this.#postfixed();
    return this.#took("^", "**") ? power(base, this.#signed()) : base;
  }

  /** Reads what a ! or a percent sign may follow: one before an operand divides instead. @returns {Value} */
  #postfixed() {
    let value = this.#primary();
    for (;;) {
      if (this.#took("!")) value = factorial(value);
      else if (this.#tokens[this.#at] === "%" && !/^[\w.(]/.test(this.#tokens[this.#at + 1] ?? "")) {
        this.#at++;
        value = over(value, 100n);
      } else return value;
    }
  }

  /** @returns {Value} */
  #primary() {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw new Error("The expression ends too early.");
    if (token === "(") return this.#closed(this.sum());
    if (/^[\d.]/.test(token)) return valueOf(token.replaceAll("_", ""));
    if (Object.hasOwn(CONSTANTS, token)) return CONSTANTS[token];
    const isExact = Object.hasOwn(EXACT, token);
    if (!isExact && !Object.hasOwn(FUNCTIONS, token)) throw new Error(`${token} is unknown. There are: ${[...Object.keys(EXACT), ...Object.keys(FUNCTIONS), ...Object.keys(CONSTANTS)].join(", ")}.`);
    if (!this.#took("(")) throw new Error(`${token} needs parentheses.`);
    const given = [this.sum()];
    while (this.#took(",")) given.push(this.sum());
    return this.#closed(isExact ? EXACT[token](...given) : checked(FUNCTIONS[token](...given.map(Number))));
  }

  /** @param {Value} value */
  #closed(value) {
    if (!this.#took(")")) throw new Error("A parenthesis is not closed.");
    return value;
  }
}

/** @param {string} text */
const valueOf = (text) => (/^\d+$/.test(text) ? BigInt(text) : checked(Number(text)));

/** @template {Value} Result @param {Result} value @returns {Result} */
function checked(value) {
  if (Number.isNaN(value)) throw new Error("The result is not a real number.");
  if (value === Infinity || value === -Infinity || (typeof value === "bigint" && bitsOf(value) > MAX_BITS)) throw new Error("A number is too large.");
  return value;
}

/** @param {bigint} value */
const bitsOf = (value) => (value < 0n ? -value : value).toString(2).length;

/** @type {(a: Value, b: Value) => Value} */
const plus = (a, b) => checked(typeof a === "bigint" && typeof b === "bigint" ? a + b : Number(a) + Number(b));

/** @param {Value} a @returns {Value} */
const minus = (a) => -a;

/** @type {(a: Value, b: Value) => Value} */
const times = (a, b) => checked(typeof a === "bigint" && typeof b === "bigint" ? a * b : Number(a) * Number(b));

/** @type {(a: Value, b: Value) => Value} */
function over(a, b) {
  if (Number(b) === 0) throw new Error("Division by zero.");
  return typeof a === "bigint" && typeof b === "bigint" && a % b === 0n ? a / b : checked(Number(a) / Number(b));
}

/** @type {(a: Value, b: Value) => Value} */
function rest(a, b) {
  if (Number(b) === 0) throw new Error("Division by zero.");
  return typeof a === "bigint" && typeof b === "bigint" ? a % b : checked(Number(a) % Number(b));
}

/** Raises to a power; the length of the result is known before it is computed. @type {(base: Value, exponent: Value) => Value} */
function power(base, exponent) {
  if (typeof base !== "bigint" || typeof exponent !== "bigint" || exponent < 0n) return checked(Number(base) ** Number(exponent));
  if ((base > 1n || base < -1n) && BigInt(bitsOf(base) - 1) * exponent > BigInt(MAX_BITS)) throw new Error("A number is too large.");
  return checked(base ** exponent);
}

/** @param {Value} value @returns {Value} */
function factorial(value) {
  if (typeof value !== "bigint" || value < 0n || value > MAX_FACTORIAL) throw new Error(`A factorial takes whole numbers from 0 to ${MAX_FACTORIAL}.`);
  let product = 1n;
  for (let factor = 2n; factor <= value; factor++) product *= factor;
  return product;
}

/** @type {(value: Value, how: (value: number) => number) => Value} */
const rounded = (value, how) => (typeof value === "bigint" ? value : BigInt(how(value)));
