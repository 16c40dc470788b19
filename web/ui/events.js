// The page's own events. A script tells those that stand on it by emitting one: it need not know them.

/** @import { ChatRequest } from "../inpage.js" */
/** @import { Attachment, Chat, ChatMessage, Place } from "./chats.js" */

/**
 * Every event there is, with what it carries.
 * @typedef {object} Events
 * @property {undefined} answergrows an answer in the open chat has more text, or another status
 * @property {HTMLElement} answersearched an answer is shown that was given passages of files
 * @property {{ article: HTMLElement, message: ChatMessage }} callsshown an answer is shown that called tools
 * @property {{ article: HTMLElement, message: ChatMessage }} certaintyshown a message is shown whose tokens are
 * @property {ChatMessage} answerwritten an answer has ended
 * @property {undefined} chatmerged what another tab wrote was merged into a chat
 * @property {undefined} chatschange a chat was added, changed, renamed, opened or answered
 * @property {undefined} chatshown another chat is open
 * @property {undefined} chatsread the chats of earlier visits are in memory
 * @property {Chat} chatunwanted a chat is to be deleted
 * @property {Chat} chatwanted a chat is to be opened: a user's choice, or the first of those that were imported
 * @property {undefined} draftcounted how much of the context the message in the composer takes is known anew
 * @property {undefined} fileschange other files go with the message in the composer, or more is known about one
 * @property {{ article: HTMLElement, files: Attachment[] }} filesshown a message is shown that files go with
 * @property {string} guestcame another tab wants to use the engine of this one
 * @property {{ content: string, attachments?: Attachment[], place?: Place, options?: Partial<ChatRequest> }} messagesent the user sends a message, in the place of the one that was edited
 * @property {string} hubmodelwanted the user wants to see a model of the Hub: its address
 * @property {undefined} modelchange another model is loaded, or being loaded, or none
 * @property {{ where: string, name: string, isFetched: boolean }} modelchosen the user chose a model of the Hub; `isFetched`: not all of it is here
 * @property {{ article: HTMLElement, message: ChatMessage }} jsonanswered an answer is shown that was ordered to be JSON
 * @property {undefined} modelslisted the list of models is new
 * @property {undefined} panelunwanted the dock is to be closed
 * @property {{ name: string, settings: Record<string, any> }} panelwanted a panel (see panels/table.js) is to be opened beside the chat; without a name, the last one, or closed. Settings are the panel's to read: as they come from a link they are texts
 * @property {undefined} readiness a model, or the engine itself, is nearer to being ready
 * @property {undefined} tabschange another tab came, went, or told something else of itself
 * @property {undefined} textdrawn a text has another height: something in it was drawn
 */

/** Tells those who listen, at once. @type {<Name extends keyof Events>(name: Name, ...carried: Events[Name] extends undefined ? [] : [Events[Name]]) => void} */
export const emit = (name, ...[detail]) => { dispatchEvent(new CustomEvent(name, { detail })); };

/** Listens to an event. @type {<Name extends keyof Events>(name: Name, listener: (carried: Events[Name]) => void, options?: AddEventListenerOptions) => void} */
export const on = (name, listener, options) => addEventListener(name, (event) => listener(/** @type {CustomEvent} */ (event).detail), options);
