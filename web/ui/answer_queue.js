// Answers on their way.

/** @import { Answer, Chat, ChatMessage } from "./records.js" */

/** @type {Answer[]} */
export const answers = []; // the first is being written, the others wait

/** @param {Chat} chat */
export const answerIn = (chat) => answers.find((each) => each.chat === chat);

/** @param {ChatMessage} message */
export const answerOf = (message) => answers.find((each) => each.message === message);

/** A fault of painting is told, and keeps no answer waiting. @param {() => void} painting */
export function paint(painting) {
  try {
    painting();
  } catch (error) {
    reportError(error);
  }
}
