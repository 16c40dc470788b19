/** What Python sees as a JsException: `name` is the kind, `message` the text. */
export class BridgeFault extends Error {
  /**
   * @param {string} kind
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.name = kind;
  }
}

// Pyodide takes for an error what has a stack, and a DOMException, but none of the classes that extend it, of which
// Chromium gives no stack (QuotaExceededError): a promise that rejects with one would stay pending in Python for ever.
if (!("stack" in DOMException.prototype)) {
  Object.defineProperty(DOMException.prototype, "stack", { value: "", configurable: true, writable: true });
}
