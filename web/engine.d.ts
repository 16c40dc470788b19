// Types of the worker's side; types alone, so that nobody need fetch them.
//
// Messages out: {event: "alive" | "phase" | "ready" | "failed" | "answer", …} and {id, json, done}; in: {shared}, then
// {question}, {id, call, args, files, aborted} or {id} alone, which cancels. A call's JSON is its events, then {result}
// or {error}; id 0 tells notices.

/** Pyodide's own insides have no types. */
export type Python = import("pyodide").PyodideAPI & { _module: any, _api: any };

/** A native library, with its path in Python's files. */
export type Library = [path: string, module: WebAssembly.Module | Promise<WebAssembly.Module>];

/** Those of loadPyodide's that we use. */
export interface PythonOptions {
  packages?: string[];
  env?: Record<string, string>;
  _makeSnapshot?: boolean;
  _loadSnapshot?: Promise<ArrayBuffer>;
  _snapshotDeserializer?: (name: string) => object;
}

export interface Snapshot { memory: string, libraries: [path: string, url: string][], wheels: Record<string, string> }

/** site.json, as tools/site.py describes it. */
export interface Site { pyodide: string, packages: string[], runtime: string, snapshot?: Snapshot }

export interface Started { python: Python, isRestored: boolean }

/** A plan's steps, column by column. A step is [pipeline, bind group] or [source buffer, target buffer]. */
export interface Plan { label: string, first: any[], second: any[], isCopy: boolean[] }

export interface BufferSpec { label: string, size: number, usage: number }
export interface PipelineSpec { label: string, source: string, entryPoint: string, constants: Record<string, number> }
export interface BindGroupSpec { label: string, pipeline: number, bindings: [buffer: number, offset: number, size: number][] }

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
  submitTimed(plan: number, countsAt: number, dispatches: number, ticks: number): void;
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

export interface FileCalls {
  /** Answers at once, so that closing can break off a request that nobody has answered yet. `optionsJson`: fetch's. */
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
