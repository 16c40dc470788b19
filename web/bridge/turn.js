/**
 * Calls back in a later turn of the event loop, after all that this thread was told before. In Chromium a channel that is
 * in use can come first again and again, ahead of a worker's own messages: so each turn has a channel of its own.
 * @type {(then: () => void) => void}
 */
export function turn(then) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    then();
  };
  port2.postMessage(null);
}
