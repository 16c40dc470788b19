// Chats as they are kept and shown; inpage.d.ts has what a model is sent.

import type { EngineMessage } from "../inpage.js";

export interface ChatMessage {
  id: string;
  /** When it was added: messages stand in this order. */
  born: number;
  /** Counts its changes: an answer grows. */
  version: number;
  role: "user" | "assistant";
  content: string;
  /** The files that go with a question; in chats of older versions its text begins with theirs. */
  attachments?: Attachment[];
  /** What was found for a question in files that are searched. */
  sources?: Sources;
  /** How many seconds it reasoned, where that is known. */
  thought?: number;
  /** How an answer went; a text in chats of older versions. */
  note?: string | EngineMessage[];
  /** Why it ended early, in English; in the user's language by its reason and facts, where it has them. */
  error?: string;
  reason?: string;
  facts?: EngineMessage["facts"];
  /** Of an answer, packed (answers.js), where all of them are known. */
  tokens?: string;
  /** What wrote it, and how that went. */
  made?: Record<string, any>;
  /** What it was asked with, by their names in a request. */
  settings?: Record<string, any>;
  /** 1 where its tokens are shown in place of its text. */
  certain?: number;
  /** The error's code, for programs; "length" where it can be continued, "full" where the context has no room for that. */
  code?: string;
  /** The message before it, if there is one. */
  parent?: string;
  /** The first of its versions, where it is not the first itself. */
  slot?: string;
  /** When the user last chose it among its versions. */
  picked?: number;
  /** Counts deletions and what took them back: it is deleted where this is odd. */
  gone?: number;
}

/** A file that goes with a question, as its text, or an image. */
export interface Attachment {
  name: string;
  /** What the model reads of it before its text: the name, and which part of the file it is. */
  title: string;
  /** "pdf", "image", or else the language of its text. */
  kind: string;
  /** Of an image, its data: address. */
  text: string;
  /** Of the file. */
  bytes: number;
  /** Of the file; none where it has no pages. */
  pages: number;
  /** Where in the text each page begins, of those that are in it. */
  starts: number[];
  /** Of the text, for the model that counted them; 0 where none has. */
  tokens: number;
  /** Tokens of the file's text, where this is only its beginning. */
  whole: number;
  /** Its id, where each question is given passages of it instead of the whole. */
  search?: string;
  /** 1 where the question that it came with is answered from summaries of all its parts. */
  inParts?: number;
  /** Of a folder's files, which begin at `starts`. */
  names?: string[];
}

/** What a question was given of files that are searched. */
export interface Sources {
  /** As the model reads it. */
  text: string;
  /** In the order of their numbers. */
  passages: Passage[];
  /** How many parts were summarised, where they were. */
  inParts?: number;
}

/** A part of a file that is searched. */
export interface Passage {
  /** The file's id. */
  search: string;
  /** Of the file, or of the one in a folder. */
  name: string;
  unit: "page" | "line" | "row";
  first: number;
  last: number;
  /** In the file's text. */
  start: number;
  end: number;
  /** Which it is, as a model reads it. */
  label: string;
  /** Its own, or its summary. */
  text: string;
}

export interface Chat {
  id: string;
  title: string;
  system: string;
  /** The folder that it is in, or nothing. */
  folder: string;
  /** Never kept: it lasts as long as the page. */
  temporary?: boolean;
  /** When title, system prompt, notebook and folder were last set. */
  set: { title: number; system: number; notebook: number; folder: number };
  /** As an .ipynb, or nothing. */
  notebook: string;
  /** When the user last went on with it. */
  updated: number;
  /** When it was deleted; going on later takes that back. */
  deleted: number;
  /** By age; deleted ones stay, without their text. */
  messages: ChatMessage[];
  /** Changes whenever it is written: another one means that another tab wrote it. */
  stamp?: string;
}
