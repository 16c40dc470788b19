// What is kept of a chat.

export interface Message {
  id: string;
  /** When it was added: messages stand in this order. */
  born: number;
  /** Counts its changes: an answer grows. */
  version: number;
  role: "user" | "assistant";
  content: string;
  /** How many seconds it reasoned, where that is known. */
  thought?: number;
  /** How an answer went. */
  note?: string;
  /** Why it ended early, in words. */
  error?: string;
  /** The same for programs. */
  code?: string;
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
  /** Ids of messages that were deleted. */
  gone: string[];
  messages: Message[];
  /** Of the last time it was written: another one means that another tab wrote it. */
  stamp?: string;
}

interface Schema extends import("idb").DBSchema {
  chats: { key: string, value: Chat & { version: number } };
}

export type Database = import("idb").IDBPDatabase<Schema>;

/** What tabs tell each other. */
export type TabMessage =
  | { saved: string, writing?: string }
  | { shows: string, asks?: boolean };

/** The answer that is being written. */
export interface Answer {
  chat: Chat;
  message: Message;
  abort: AbortController;
  tokens: number;
  status: string;
  /** When its first token came. */
  first?: number;
  /** That will paint it. */
  frame?: number;
  /** The timer that will save it. */
  saving?: number;
  /** Where it is shown. */
  painted?: { article: HTMLElement, view: ReturnType<typeof import("./markdown.js").markdownIn> };
}
