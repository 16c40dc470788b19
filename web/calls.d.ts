// What web/client.js takes and gives; types alone, so that the page need not fetch them.

import type { ErrorCode, InpageError, Notice, ReadyReport, StartPhase } from "./inpage.d.ts";

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

/** What web/api.js tells the page. */
export interface PageListeners extends Omit<Listeners, "onNotice"> {
  onModel(): void;
  onRestart(report: ReadyReport): void;
  /** What the user allows to ask of the Hub, after asking them where need be; null: nothing. */
  onHub(): Promise<HubPermission | null | undefined>;
}

export interface HubPermission {
  token: string | null;
}

/** site.json, as tools/site.py describes it; `hub` is the Hub's address where this page may ask it. */
export interface Site {
  pyodide: string;
  packages: string[];
  runtime: string;
  snapshot?: Snapshot;
  hub?: string;
}

export interface Snapshot {
  memory: string;
  libraries: [path: string, url: string][];
  wheels: Record<string, string>;
}

export interface Started {
  python: Python;
  isRestored: boolean;
}

/** Pyodide's own insides have no types. */
export type Python = import("pyodide").PyodideAPI & { _module: any, _api: any };
/** A native library, with its path in Python's files. */
export type Library = [path: string, module: WebAssembly.Module | Promise<WebAssembly.Module>];

/** Those of loadPyodide that we use. */
export interface Options {
  packages?: string[];
  env?: Record<string, string>;
  _makeSnapshot?: boolean;
  _loadSnapshot?: Promise<ArrayBuffer>;
  _snapshotDeserializer?: (name: string) => object;
}

/** Steps, column by column. A step is [pipeline, bind group] or [source buffer, target buffer]. */
export interface Plan {
  label: string;
  first: any[];
  second: any[];
  isCopy: boolean[];
}

export type BufferSpec = { label: string, size: number, usage: number };
export type PipelineSpec = { label: string, source: string, entryPoint: string, constants: Record<string, number> };
export type BindGroupSpec = { label: string, pipeline: number, bindings: [buffer: number, offset: number, size: number][] };

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
  status?: number;
}
