// What web/client.js takes and gives; types alone, so that the page need not fetch them.

import type { ErrorCode, InpageError, Notice, StartPhase } from "./inpage.d.ts";

export type { ErrorCode, InpageError };
export type Fault = Partial<InpageError> & { code: ErrorCode, message: string };
export type Failure = { kind: ErrorCode, message: string, phase?: string };
export type AnyNotice = Notice | { kind: "model", text: string, loaded: any };
export type Phase = { name: StartPhase["name"], seconds?: number };

export interface Listeners {
  /** A phase begins, or has taken so many seconds. */
  onPhase(phase: Phase): void;
  onFailure(failure: InpageError): void;
  onNotice(notice: AnyNotice): void;
  /** Python keeps the worker from answering, or answers again. */
  onBusy(busy: boolean): void;
}

/** What the page hears besides notices: which model is loaded, and that another engine has started. */
export type PageListeners = Omit<Listeners, "onNotice"> & Record<"onModel" | "onRestart", (report?: any) => void>;

/** A call's chunks as they come. */
export type Streamed = (
  begin: (onEvent: (chunk: any) => void, abort: AbortSignal) => Promise<unknown>, signal?: AbortSignal,
) => AsyncGenerator<any, void, undefined>;

/** A call without its answer yet. */
export interface Pending {
  resolve(value: any): void;
  reject(error: InpageError): void;
  onEvent: ((event: any) => void) | undefined;
  settled(): void;
}

/** A file on its way into the Python heap (bridge/files.js). */
export interface Stream {
  reader: Promise<Reader>;
  /** Bytes that were read but not handed over. */
  rest: Uint8Array;
  stop: () => void;
  closed: boolean;
}

export interface Reader {
  read: () => Promise<ReadableStreamReadResult<Uint8Array>>;
  headers?: Headers;
}
