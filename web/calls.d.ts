// What web/client.js takes and gives; types alone, so that the page need not fetch them.

import type { DeviceKind, ErrorCode, InpageError, Kernels, KvType, Message, Notice, ReadyReport, StartPhase } from "./inpage.d.ts";

export type { ErrorCode, InpageError };
export type Fault = Partial<InpageError> & { code: ErrorCode, message: string };
export type Failure = { kind: ErrorCode, message: string, phase?: string };
/** `paths`: of all that are loaded, in the order they came, by name; null of files that the user gave. */
export type AnyNotice = Notice | { kind: "model", text: string, loaded: any, paths: Record<string, string | null> };
export type Phase = { name: StartPhase["name"], seconds?: number };

export interface Listeners {
  newWorker(options: WorkerOptions): Worker;
  /** What a worker holds while it lives, and its name. */
  lock: string;
  /** By somebody else's page: JSON for py_runtime/app/outer_page.py. */
  outerPage?: string;
  /** The one that models are loaded onto where `load` is not told; null: the site's, or the faster one. */
  device: DeviceKind | null;
  /** A phase begins, or has taken so many seconds. */
  onPhase(phase: Phase): void;
  onFailure(failure: InpageError): void;
  onNotice(notice: AnyNotice): void;
  /** Python keeps the worker from answering, or answers again. */
  onBusy(busy: boolean): void;
}

/** What web/api.js tells the page. */
export interface PageListeners extends Omit<Listeners, "lock" | "onNotice"> {
  /** Those that are loaded with where `load` is not told. */
  kernels: Kernels | null;
  kv: KvType | null;
  onModel(): void;
  onRestart(report: ReadyReport): void;
  /** What the user allows to ask of the Hub, after asking them where need be; null: nothing. */
  onHub(): Promise<HubPermission | null | undefined>;
}

export interface HubPermission {
  token: string | null;
}

/** site.json, as tools/site.py describes it; `hub` is the Hub's address where this page may ask it, `defaults` the engine's of sampling. */
export interface Site {
  pyodide: string;
  packages: string[];
  defaults: Record<string, number>;
  runtime: string;
  /** The folder of what the page takes from npm. */
  vendor: string;
  snapshot?: Snapshot;
  hub?: string;
  /** Where its page is not to choose by itself. */
  device?: DeviceKind;
  headers: Record<string, string>;
  /** The name of what `files` lists, by hash. */
  release: string;
  files: Record<string, string>;
}

export interface Snapshot {
  memory: string;
  /** Of the memory, unzipped, in bytes. */
  size: number;
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

/** py_runtime.app.in_page */
export type Runtime = { start: (id: number, call: string, fields: string) => void, cancel: (id: number) => void };
export type Post = (id: number, json: string, done: boolean) => void;
export type FetchOk = (path: string, options?: RequestInit) => Promise<Response>;
export type Compiled = Promise<WebAssembly.Module>;
/** `core` is Pyodide's own; without it, Pyodide finds it. */
export type LoadPython = (indexURL: string, core: Compiled | null, libraries: Library[], options: Options) => Promise<Python>;
export type RestorePython = (indexURL: string, core: Compiled, snapshot: Snapshot) => Promise<Python>;
export type StartPython = (site: Site) => Promise<Started>;
export type OpenEngine = (module: any, site: Site, noAdapter: Error | null) => Promise<any>;
export type ImportRuntime = (started: Started, wheel: string) => Promise<any>;
export type Unzip = (url: string, size: number) => Promise<ArrayBuffer>;
export type Phased = <Result>(name: string, work: () => Result | Promise<Result>) => Promise<Result>;

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

/** Inside one error scope of each kind. */
export type Scoped = <Made>(what: string, create: (device: GPUDevice) => Made) => Promise<Awaited<Made>>;
/** Of specs in JSON the handles in JSON; all or nothing. */
export type Creating = <Spec>(create: (spec: Spec) => Promise<object>) => (json: string) => Promise<string>;
export type Compiling = (device: GPUDevice, label: string, code: string) => Promise<GPUShaderModule>;
export type EncodePlan = (encoder: GPUCommandEncoder, plan: Plan, countsAt: number) => void;
/** With a fault of this kind, in these words. */
export type Failing = <Value>(kind: string, fault: string, promise: Promise<Value>) => Promise<Value>;

export type OnEvent = (event: any) => void;
/** `urgent`: code that keeps the worker from hearing of it is interrupted. */
export type CallOptions = { onEvent?: OnEvent, signal?: AbortSignal, urgent?: boolean };
export type Call = <Name extends keyof Calls>(name: Name, fields: Calls[Name], options?: CallOptions) => Promise<any>;
export type Send = <Name extends keyof Calls>(
  call: Name, fields: Calls[Name], onEvent?: OnEvent, signal?: AbortSignal, urgent?: boolean,
) => Promise<any>;

/**
 * The calls and the fields of each. They go to the worker as one JSON object; py_runtime/app/engine.py has a method of
 * the same name with parameters of the same names (`python` is in in_page.py). Fields that are undefined are left out.
 */
export interface Calls {
  models: {};
  load: { where: string | File[], device?: DeviceKind | null, threads?: number | null, kernels?: Kernels | null, kv?: KvType | null, draft?: string | null, hub: HubPermission | null, keep?: boolean, is_restored: boolean };
  hub_files: { where: string, hub: HubPermission | null };
  hub_search: { words: string, hub: HubPermission | null };
  keep_files: { files: File[] };
  unload: { name?: string };
  adapters: { model?: string, where?: string | File[], name?: string, strength?: number, is_removed?: boolean };
  samplers: {};
  check_format: { response_format: object };
  stored: {};
  share_stored: { is_allowed: boolean };
  delete_stored: { name_or_url: string };
  chat: { request: object };
  complete: { request: object };
  embed: { request: object };
  rerank: { request: object };
  /** `fields`: those of the action, in py_runtime/app/document_calls.py. */
  documents: { action: "open" | "embed" | "search" | "parts", fields: object };
  count_tokens: { messages: Message[]; tools?: ChatRequest["tools"] };
  verify: { thorough: boolean };
  /** `fields`: those of the view; `model`: the name of a loaded one, where it is not to be the last. */
  glass: { view: string, fields: object, model?: string };
  /** `is_told`: what the code prints comes as events; `as_text`: its value comes as text for people. */
  python: { code: string, is_told?: boolean, as_text?: boolean };
  /** Of py_runtime/app/notebook_calls.py; a cell tells CellEvents. */
  cell: { code: string, number: number, chat: OpenChat };
  complete_code: { text: string };
  answer_cell: { number: number, value: unknown };
}

/** The chat beside a notebook. */
export interface OpenChat {
  title: string;
  messages: Message[];
}

/** What a cell tells while it runs; `asks` wants a call of `answer_cell`. */
export interface CellEvent {
  printed?: string;
  /** A value by its MIME types; one of the same name takes the place of the one before. */
  shown?: Record<string, string>;
  name?: string;
  progress?: { number: number, label: string, done: number, total: number | null };
  asks?: { number: number, kind: "line" | "send", prompt?: string, text?: string };
}

/** A call's chunks as they come. */
export type Streamed = (
  begin: (onEvent: (chunk: any) => void, abort: AbortSignal) => Promise<unknown>, signal?: AbortSignal,
) => AsyncGenerator<any, void, undefined>;

/** A call without its answer yet. */
export interface Pending {
  name: string;
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

// What the worker and the page tell each other ----------------------------------------------------
// Messages out: {event: "alive" | "phase" | "ready" | "failed" | "answer", …} and {id, json, done}; in: {shared, outerPage, device}, then
// {question}, {id, call, fields, files, aborted} or {id} alone, which cancels. A call's JSON is its events, then {result}
// or {error}; id 0 tells notices.

// What the bridge does for Python ------------------------------------------------------------------

export interface ObjectCalls {
  createBuffers(json: string): Promise<string>;
  createPipelines(json: string): Promise<string>;
  createBindGroups(json: string): Promise<string>;
  /** `json`: of the steps' first handles, and their second ones. */
  createPlan(label: string, json: string): number;
  /** `json`: of handles. A buffer's memory comes back at once. */
  release(json: string): void;
}

export interface ReplayCalls {
  submit(plan: number, countsAt: number, writesAt: number, writeCount: number): void;
  /** So many dispatches, each one's begin and end in nanoseconds left in the buffer `ticks`. */
  submitTimed(plan: number, countsAt: number, dispatches: number, ticks: number): Promise<void>;
  /**
   * Everything a read-back needs is copied into one staging buffer: one map, one await. Each of the rounds before it is
   * submitted by itself, so that the GPU is at work on one while the browser records the next.
   */
  submitAndRead(
    plan: number, countsAt: number, writesAt: number, writeCount: number, readsAt: number, readCount: number, repeat: number,
  ): Promise<void>;
  /** Resolves once the GPU has taken every upload; a device that was lost on the way says so. */
  finishWrites(): Promise<void>;
}

/** `writesAt`, `readsAt`: rows of address, heap address (0 writes zeros), bytes. */
export interface CpuCalls {
  /** The first of the modules that this browser understands, in a new memory; resolves to a handle of that. */
  open(modulesAt: number, moduleCount: number, pages: number, maxPages: number): Promise<number>;
  close(handle: number): void;
  /** The first address that the kernels leave free. */
  heapBase(handle: number): number;
  /** One of the kernels' own functions, at once. */
  call(handle: number, name: keyof CpuFunctions, ...numbers: number[]): number;
  grow(handle: number, pages: number): void;
  startThread(handle: number, thread: number, stack: number): void;
  /** Writes, and replays a plan of `last` steps if `repeat` is not 0, after all that came before. */
  submit(handle: number, ...given: CpuSubmitted): void;
  submitAndRead(handle: number, readsAt: number, readCount: number, ...given: CpuSubmitted): Promise<void>;
  /** A replay that leaves each step's nanoseconds at an address of the heap, as f64. */
  timeSteps(handle: number, steps: number, counts: number, last: number, timesAt: number): Promise<void>;
}

export interface FileCalls {
  /**
   * Answers at once, so that closing can break off a request that nobody has answered yet. `optionsJson`: fetch's;
   * with `anyStatus` a refusal is an answer, too.
   */
  openUrl(url: string, optionsJson: string): number;
  /** Of a URL's stream. */
  streamHeaders(handle: number): Promise<string>;
  /** A file of the user's, or one in storage, or a part of it. */
  openBlob(blob: Blob): number;
  /** Puts the stream's next bytes at an address of the heap; resolves to their number, 0 at the end. */
  readBlock(handle: number, address: number, capacity: number): Promise<number>;
  closeStream(handle: number): void;
  writeFile(file: FileSystemSyncAccessHandle, at: number, address: number, bytes: number): number;
}

// The CPU's threads (bridge/cpu.js, shaders/cpu/replay.c) -------------------------------------------

export interface CpuFunctions {
  open_pool(threads: number, scratch: number): void;
  kernel_at(number: number): number;
  grain_of(number: number): number;
  fragment_at(number: number): number;
}

export interface CpuExports extends Record<keyof CpuFunctions, (...numbers: number[]) => number | undefined> {
  __heap_base: WebAssembly.Global;
  __stack_pointer: WebAssembly.Global;
  /** The first step that is not done by then, or -1. */
  replay(steps: number, counts: number, first: number, last: number, deadline: number): number;
  work(thread: number): void;
}

export type CpuSubmitted = [
  writesAt: number, writeCount: number, steps: number, counts: number, last: number, repeat: number,
];

/** A part of a job; whether it is done, after it has gone on until the deadline. */
export type CpuRun = (deadline: number) => boolean;

export interface CpuJob {
  runs: CpuRun[];
  resolve?: (nothing?: any) => void;
  reject?: (error: Error) => void;
}

export interface CpuMachine {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  exports: CpuExports;
  workers: Worker[];
  jobs: CpuJob[];
  /** A message gives the first job its next slice, or is one of those that others have their turn between. */
  turns: MessagePort;
  /** How many of the latter are still to come. */
  pause: number;
  /** Why nothing can be computed any more. */
  lost: string | null;
}

/** What worker.js posts, and web/shared_worker.js passes on. */
export interface FromWorker {
  id?: number;
  json: string;
  done?: boolean;
  event?: string;
}

/** What web/shared_tab.js sends: a call, its end, a question, or, with a lock, that the tab is there; {event: "entered"} answers that. */
export interface FromTab {
  id: number;
  call?: string;
  question?: number;
  lock?: string;
  outerPage?: string;
  device?: DeviceKind | null;
}
