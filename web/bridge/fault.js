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
