// What is kept of a chat, and answers on their way into it.

import type { ChatCompletionChunk, ChatRequest, EngineMessage } from "../inpage.d.ts";

/** As it is kept and shown; inpage.d.ts has what a model is sent. */
export interface ChatMessage {
  id: string;
  /** When it was added: messages stand in this order. */
  born: number;
  /** Counts its changes: an answer grows. */
  version: number;
  role: "user" | "assistant";
  content: string;
  /** How many seconds it reasoned, where that is known. */
  thought?: number;
  /** How an answer went; a text in chats of older versions. */
  note?: string | EngineMessage[];
  /** Why it ended early, in English; in the user's language by its reason and facts, where it has them. */
  error?: string;
  reason?: string;
  facts?: EngineMessage["facts"];
  /** The same for programs; "length" where it can be continued. */
  code?: string;
  /** The message before it, if there is one. */
  parent?: string;
  /** The first of its versions, where it is not the first itself. */
  slot?: string;
  /** When the user last chose it among its versions. */
  picked?: number;
  /** Odd: it is deleted. Counts deletions and what took them back. */
  gone?: number;
}

export interface Chat {
  id: string;
  title: string;
  system: string;
  /** When title and system prompt were last set. */
  set: { title: number, system: number };
  /** When the user last went on with it. */
  updated: number;
  /** When it was deleted; going on later takes that back. */
  deleted: number;
  /** By age; deleted ones stay, without their text. */
  messages: ChatMessage[];
  /** Of the last time it was written: another one means that another tab wrote it. */
  stamp?: string;
}

interface Schema extends import("idb").DBSchema {
  chats: { key: string, value: Chat & { version: number } };
}

export type Database = import("idb").IDBPDatabase<Schema>;

/** In one transaction. */
export type Write = (database: Database, chat: Chat, records?: typeof import("./chat_records.js")) => Promise<void>;
/** `writing`: the message that is being written. */
export type SaveChat = (chat: Chat, writing?: string) => Promise<void>;
export type Store = (chat: Chat, writing?: string) => void;
export type Place = Pick<ChatMessage, "parent" | "slot">;
export type AddMessage = (chat: Chat, role: ChatMessage["role"], content: string, place?: Place) => ChatMessage;

/** What tabs tell each other. */
export type TabMessage =
  | { saved: string, writing?: string }
  | { shows: string, asks?: boolean };

/** A question that is being edited. */
export interface Editor {
  place: Place;
  /** What was in the composer before is back. */
  stop(): void;
}

/** An answer that is being written, or waits for its turn. */
export interface Answer {
  chat: Chat;
  message: ChatMessage;
  options: Partial<ChatRequest>;
  abort: AbortController;
  tokens: number;
  /** Tokens of its prompt, once they are counted. */
  prompt?: number;
  /** What it waits for, or how it goes. */
  status: string;
  /** When its first token came. */
  first?: number;
  /** That will paint it. */
  frame?: number;
  /** The timer that will save it. */
  saving?: number;
  /** Where it is shown. */
  painted?: Painted;
}

export interface Painted {
  grow(): void;
  /** What was written is whole; where that is nothing, the version before it is shown again. */
  finish(isNothing: boolean): void;
}

export type PaintedIn = (article: HTMLElement, growing: Answer) => Painted;
export type PromptOf = (chat: Chat, last?: ChatMessage) => import("../inpage.d.ts").Message[];
export type AnswerIn = (chat: Chat, message: ChatMessage, options?: Answer["options"]) => Promise<void>;
export type TakeIn = (growing: Answer, chunk: ChatCompletionChunk) => void;
export type AnswerHere = (message: ChatMessage, options?: Answer["options"]) => void;
