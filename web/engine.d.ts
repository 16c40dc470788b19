// The types of the npm package `inpage`: docs/embedding.md tells how it is used.
//
//     import { createEngine } from "inpage";
//     const engine = await createEngine({ models: ["https://models.example.org/SmolLM2-135M-Instruct/"] });
//     await engine.load("SmolLM2-135M-Instruct");

import type { DeviceKind, Inpage, LoadProgress } from "./inpage.d.ts";

export type * from "./inpage.d.ts";

export interface EngineOptions {
  /** The folder that has what lies beside this module; if not given, the one that it lies in. It may be of another origin. */
  assetsURL?: string | URL;
  /**
   * Addresses of models that this page offers, of any origin that lets it read them; `load` takes them by their last
   * part, too. `hf:owner/name` among them is the leave to ask the Hugging Face Hub. Others are loaded from this page's
   * own origin alone.
   */
  models?: string[];
  /** Whether models are kept in this browser for the next visit. They are if not given. */
  storage?: boolean;
  /**
   * Whether tabs of this origin that give the same options share one engine, in a SharedWorker: one device, one set of
   * models. Its files must be of this origin; models are not kept in the browser, and files of the user's not taken.
   * Browsers without SharedWorkers reject with `no-webgpu`; where these have no WebGPU, the CPU computes, with one thread.
   */
  shared?: boolean;
  /** What models are loaded onto where `load` is not told; if not given, the faster one. */
  device?: DeviceKind | null;
  /** Hears how the engine starts and how models load; `load` may have a listener of its own. */
  onProgress?: (progress: EngineProgress) => void;
}

export type EngineProgress = LoadProgress | (Omit<LoadProgress, "phase"> & { phase: "start" });

/** An engine of its own, with a worker and a device. */
export interface Engine extends Inpage {
  /** Ends the worker and gives the device back; resolves once that is so. Calls without an answer reject with `disposed`. */
  dispose(): Promise<void>;
}

/** Resolves once Python and the device are up; rejects with an InpageError where they cannot be. */
export function createEngine(options?: EngineOptions): Promise<Engine>;
