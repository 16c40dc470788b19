// The types of `globalThis.inpage`, for scripts that call it. Request and answer follow OpenAI's names; what is
// our own is said so. web/api.js is checked against this file: `make lint` fails where the two differ.
//
//     /// <reference path="inpage.d.ts" />
//     const answer = await inpage.chat.completions.create({ messages: [{ role: "user", content: "Hello" }] });

declare global {
  /** The engine of this page. */
  var inpage: Inpage;
}

export interface Inpage {
  /**
   * Resolves once Python and the device are up; rejects with an InpageError where they cannot be. `restart` puts a new
   * promise in its place: read it anew rather than keep it.
   */
  readonly ready: Promise<ReadyReport>;
  /** What `load` gave for the model that was loaded last; null while none is. */
  loaded: LoadedModel | null;
  /** Calls of `load` that have not ended. A page that opens loads a stored model by itself, unless there is one. */
  loads: number;
  /** What this site offers. */
  models(): Promise<OfferedModel[]>;
  /**
   * Puts a model in the place of those that are loaded, or are being loaded; with `keep: true`, beside them. It is
   * named by its name in `models()` or by its address on this site; or it is one of the Hugging Face Hub:
   * `hf:owner/name`, or `hf:owner/name/file.gguf@revision`. What is kept of the Hub's models is loaded without asking
   * there.
   */
  load(nameOrUrl: string, options?: LoadOptions): Promise<LoadedModel>;
  /** The same with files of the user's: an ExecuTorch program, perhaps with its data and a tokenizer. */
  load(files: File[], options?: LoadOptions): Promise<OpenedFiles>;
  load(where: string | File[], options?: LoadOptions): Promise<LoadedModel | OpenedFiles>;
  /** The samplers that a request can name, besides its usual settings; those that Python registered are among them. */
  samplers(): Promise<SamplerKind[]>;
  /** LoRA adapters of the model that was loaded last, applied as it runs: PEFT's two files, or a GGUF file. */
  readonly adapters: {
    list(): Promise<AppliedAdapter[]>;
    /** Files of the user's, or the address of a folder or a .gguf on this site; all that are applied come back. */
    load(where: string | File[], options?: { name?: string; strength?: number }): Promise<AppliedAdapter[]>;
    /** From the next token on. */
    setStrength(name: string, strength: number): Promise<AppliedAdapter[]>;
    remove(name: string): Promise<AppliedAdapter[]>;
  };
  /**
   * What a repository of the Hugging Face Hub has to choose from: `owner/name`, or an address as `load` takes it. The
   * page asks its user before the Hub is asked for the first time.
   */
  hubFiles(where: string): Promise<HubFiles>;
  /** Finds models with GGUF files on the Hub by words, those that are downloaded most first. */
  hubSearch(words: string): Promise<HubFound[]>;
  /** Copies GGUF files of the user's into this browser's storage; gives the address that loads the copy. */
  keepFiles(files: File[], options?: Pick<LoadOptions, "onProgress" | "signal">): Promise<string>;
  /**
   * Stops what is being generated or loaded, then gives the memory back; of the loaded model of that name alone,
   * if one is named: others go on.
   */
  unload(name?: string): Promise<null>;
  /** The models that this browser keeps. */
  stored(): Promise<StoredModel[]>;
  deleteStored(nameOrUrl: string): Promise<null>;
  /**
   * Has all sites of this browser share one copy of what is stored, now and from now on, or no longer of what comes; says
   * whether the browser can (it has Cross-Origin Storage).
   */
  shareStored(isAllowed: boolean): Promise<boolean>;
  readonly chat: { readonly completions: Completions<ChatRequest, ChatCompletion, ChatCompletionChunk> };
  readonly completions: Completions<CompletionRequest, Completion, CompletionChunk>;
  readonly embeddings: {
    create(request: EmbeddingRequest & { encoding_format: "base64" }): Promise<Embeddings<string>>;
    create(request: EmbeddingRequest & { encoding_format?: "float" | null }): Promise<Embeddings>;
  };
  /** Texts in the order in which they answer a query, by a reranker: the best first, with scores from 0 to 1. */
  rerank(request: RerankRequest): Promise<Ranking>;
  /** How much of the context of the model that was loaded last a conversation takes, with the tools that it offers. */
  countTokens(messages: Message[], options?: Pick<ChatRequest, "tools">): Promise<{ prompt_tokens: number; context: number }>;
  /** Compares what this browser and device compute with what PyTorch computed when the last loaded model was exported. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /**
   * Looks into the model that was loaded last, or steers it: docs/glass.md has the views, their fields and answers. A view
   * waits until no answer is being written, and changes none.
   */
  glass<Answer = any>(view: string, fields?: Record<string, unknown>, options?: GlassOptions): Promise<Answer>;
  /**
   * Runs Python beside the live engine; resolves to the last expression's value as JSON. What the code defines
   * stays for the next call.
   */
  python<Value = any>(code: string, options?: PythonOptions): Promise<Value>;
  /**
   * Breaks off Python code that does not return and keeps every call waiting, as a KeyboardInterrupt: in `python` it
   * shows in the traceback, other calls reject with `aborted`. An engine that answers is left alone. False where the
   * page is not isolated and cannot do that: `restart` always can.
   */
  interrupt(): boolean;
  /**
   * Ends the engine, whatever it does, and starts another; also after a failure. Calls without an answer reject with
   * `restarted`, what `python` defined is gone. Resolves once all models that were loaded are back, from the browser's storage,
   * to what `load` gave of the last one; to null if there was none.
   */
  restart(options?: LoadOptions): Promise<LoadedModel | OpenedFiles | null>;
  /** The calls of the page's notebook, for which scripts have `python`, of its documents, and of its form of answers. */
  call(
    name: "cell" | "complete_code" | "answer_cell" | "documents" | "check_format", fields: any,
    options?: { onEvent?: (event: any) => void; signal?: AbortSignal },
  ): Promise<any>;
  /** Hears what a user should be told although nothing failed; gives the function that ends it. */
  onNotice(listener: (notice: Notice) => void): () => void;
}

export interface GlassOptions {
  /** The name of a loaded model, where it is not to be the last one. */
  model?: string;
  onProgress?: (step: { done: number; total: number }) => void;
  signal?: AbortSignal;
}

/** An array in a view's answer: numbers in row-major order. */
export interface GlassArray {
  dtype: "float32" | "int32" | "uint8";
  shape: number[];
  data: Float32Array | Int32Array | Uint8Array;
}

/** What every promise here rejects with. */
export interface InpageError extends Error {
  readonly name: "CallError";
  readonly code: ErrorCode;
  /** `invalid_request`: the field that is wrong. */
  readonly param?: string | null;
  /** `context_length_exceeded`: the tokens of the prompt, and those that the context holds. */
  readonly prompt_tokens?: number;
  readonly context?: number;
  /** `pte_unsupported`: what the file needs and the engine lacks. */
  readonly names?: string[];
  /** Of files that were given to `load`: all that is known of them, as Markdown. */
  readonly about?: string;
  /** `hub_error` and `hub_access`: what the Hub answered with. */
  readonly status?: number | null;
  /**
   * What it says, as a code and facts, for pages that word it in their user's language; `message` is the same in English.
   * Errors without a reason have their message alone.
   */
  readonly reason?: string;
  readonly facts?: EngineMessage["facts"];
  /** Of `python`, or of a bug. */
  readonly traceback?: string;
  /** The engine did not start, or has ended: why, and in which phase. */
  readonly kind?: string;
  readonly phase?: string;
}

export type ErrorCode =
  | "aborted" | "adapter" | "chat_template_error" | "context_length_exceeded" | "crashed" | "disposed" | "gpu_device_lost" | "gpu_error"
  | "gpu_out_of_memory" | "gpu_unavailable" | "gpu_validation" | "graph_error" | "hub_access" | "hub_consent"
  | "hub_error" | "input_error" | "inpage_error"
  | "invalid_request" | "model_error" | "model_file" | "model_hash" | "model_header" | "model_layout"
  | "model_manifest" | "model_tensors" | "model_version" | "network_error" | "no-adapter" | "no-device" | "no-webgpu"
  | "no_finite_logits" | "no_goldens" | "no_model" | "pte_error" | "pte_unsupported" | "python_error" | "restarted"
  | "shader_error" | "start-failed" | "storage_error" | "text_error" | "tokenizer_error";

/**
 * What the engine tells people: a stable code, and the facts it is about. Numbers are numbers, sizes are bytes; a fact may be
 * a message itself. py_runtime/base/messages.py lists the codes with their English.
 */
export interface EngineMessage {
  code: string;
  facts: Record<string, EngineFact>;
}

export type EngineFact = string | number | EngineMessage | EngineFact[];

/** A graphics card by WebGPU, or the processor by WebAssembly. */
export type DeviceKind = "gpu" | "cpu";

export interface Device {
  kind: DeviceKind;
  /** Of a CPU; null of a GPU. */
  threads: number | null;
}

export interface ReadyReport {
  device: Device;
  adapter: {
    vendor: string;
    architecture: string;
    device: string;
    description: string;
    is_fallback: boolean;
    subgroup_min_size: number;
    subgroup_max_size: number;
    /** Whether it multiplies matrices of 16 × 16 halves with sums in floats, an experiment of Chromium's. */
    has_matrix_units: boolean;
  };
  features: string[];
  /** WebGPU's names in snake case: `max_buffer_size`. */
  limits: Record<string, number>;
  versions: { inpage: string; python: string; numpy: string };
  phases: StartPhase[];
  /** The machine in a line. */
  facts: string;
  /** Whether Python came from its snapshot. */
  isRestored: boolean;
  /** The address of the Hugging Face Hub, or of a mirror, where this site lets its page ask there. */
  hub: string | null;
}

export interface StartPhase {
  name: "adapter" | "Python" | "runtime" | "GPU";
  seconds: number;
}

// Models -----------------------------------------------------------------------------------------

export interface OfferedModel {
  name: string;
  /** Below the site's address; or whole, of one that this browser keeps (`hf:`, `local:`). */
  path: string;
  /** In bytes. */
  size?: number;
  parameters?: number;
  context?: number;
  quantisation?: string;
  gpu_bytes?: number;
  /** Whether this browser keeps all of it. */
  stored: boolean;
  /** In bytes, of one whose download was begun. */
  kept_bytes?: number;
  /** Why it cannot be loaded. */
  error?: string;
  /** The largest buffer it takes on a GPU, in bytes; whether this device can hold the model, and why not, also in English. */
  largest_buffer?: number;
  fits_gpu?: boolean;
  unfit?: EngineMessage;
  fit?: string;
  /** The model in a line, and the same in English. */
  messages: EngineMessage[];
  facts: string;
}

export interface StoredModel {
  name: string;
  url: string;
  bytes: number;
  /** Whether that is all of the model. */
  complete: boolean;
  /** The same in a line, and in English. */
  messages: EngineMessage[];
  facts: string;
}

export interface LoadOptions {
  onProgress?: (progress: LoadProgress) => void;
  signal?: AbortSignal;
  /** What to load it onto, where that is not to be the page's own choice; `?device=` in the page's address changes that. */
  device?: DeviceKind | null;
  /** Of the CPU, which it asks for; if not given, as many as leave the machine usable. All models there share them. */
  threads?: number | null;
  /** To force kernels that do not suit the device best; `?kernels=` in the page's address does the same. */
  kernels?: Kernels | null;
  /** How keys and values of the context are kept, where that is not to be what is usual on the device; `?kv=` in the page's address does the same. */
  kv?: KvType | null;
  /**
   * A smaller model of the same family, by its name or address as `load` takes it: it proposes tokens, which changes no
   * answer, and makes them quicker where it is much quicker itself.
   */
  draft?: string | null;
  /**
   * Those that are loaded stay, on the same device; one of the same name is replaced. Requests name the one they are
   * for as `model`; those that name none go to the one that was loaded last.
   */
  keep?: boolean;
}

/**
 * Floats, halves, or blocks of 32 values in 8 or 4 bits each: "q8" takes a little more than a quarter of the memory of
 * "f32" and hardly changes answers, "q4" a little more than an eighth and changes them.
 */
export type KvType = "f32" | "f16" | "q8" | "q4";

/**
 * How the invocations of a kernel work together: hardly ("portable": software adapters), by subgroup operations, or through
 * workgroup memory (graphics processors without subgroups). "floats" are those whose products with quantised weights take
 * floats instead of bytes, "halves" the same in f16 (graphics processors with `shader-f16`; less exact, and only if asked
 * for), "matrices" those whose products of many tokens go by matrix units (an experiment of Chromium's,
 * `chromium-experimental-subgroup-matrix`), and "cpu" those of the CPU.
 */
export type Kernels = "portable" | "subgroups" | "memory" | "floats" | "halves" | "matrices" | "cpu";

export interface LoadProgress {
  phase: "download" | "upload" | "shaders";
  /** Bytes of a download and an upload, a count of shaders. */
  done: number;
  total: number;
  /** How far it is, and the same in English. */
  messages: EngineMessage[];
  text: string;
  seconds: number;
  /** Of the whole load, from 0 to 1. */
  fraction: number;
  /** Of a download, as soon as they can be told. */
  bytes_per_second?: number;
  seconds_left?: number;
}

/** A repository that a search has found. */
export interface HubFound {
  /** owner/name */
  name: string;
  /** Of the last 30 days. */
  downloads: number;
  licence: string;
  gated: boolean;
  /** Of the model; 0 where the Hub does not tell. */
  parameters: number;
}

export interface HubFiles {
  /** owner/name */
  name: string;
  /** That the revision stands for now. */
  commit: string;
  licence: string;
  gated: boolean;
  files: HubChoice[];
  /** The address of a good choice; null where there are no files. */
  default: string | null;
  /** Why none of it can be loaded, in English; as a message where it is one. */
  error?: string;
  fault?: EngineMessage | string;
}

export interface HubChoice {
  /** For `load`; its commit is pinned. */
  address: string;
  name: string;
  quantisation: string;
  /** It comes with what reads images. */
  sees: boolean;
  /** In bytes, all parts together; `missing` is what has not arrived yet. */
  size: number;
  missing: number;
  fits_storage: boolean;
  fits_gpu: boolean;
  /** The same in a line, and in English. */
  messages: EngineMessage[];
  facts: string;
  /** Why it does not fit, and the same in English or nothing. */
  unfit?: EngineMessage;
  fit: string;
}

export interface NamedSampler {
  name: string;
  [parameter: string]: number | string;
}

export interface SamplerKind {
  name: string;
  title: string;
  about: string;
  /** A text has no bounds. */
  parameters: { name: string; default: number | string; least: number | null; most: number | null; about: string; is_whole: boolean }[];
}

export interface AppliedAdapter {
  name: string;
  /** 1: as it was trained. */
  strength: number;
}

export interface LoadedModel {
  name: string;
  /** As `models()` has it: names may be shared, paths are not. Null of files that were given to `load`. */
  path: string | null;
  /** 0 where nobody counted them, as in an ExecuTorch file. */
  parameters: number;
  context: number;
  size: number;
  gpu_bytes: number;
  quantisation: string;
  source: { name: string; url: string | null; licence: string };
  has_chat_template: boolean;
  /** It makes vectors of texts (`embeddings`), and writes none. */
  is_encoder: boolean;
  /** It scores texts for a query (`rerank`), and makes no vectors. */
  is_reranker: boolean;
  /** Its chat template knows tools. Others are told of tools in plain words, which few of them heed. */
  calls_tools: boolean;
  /** Its prompts may have images. */
  sees: boolean;
  has_goldens: boolean;
  /** Which kernels run, and why those (`chosen`: by features, a measurement, one that is remembered, or asked for). */
  kernels: {
    name: Kernels;
    wide: boolean;
    lanes: number;
    storage_buffers: number;
    binding_bytes: number;
    /** The type of caches of keys and values. */
    kv: KvType;
    cpu: boolean;
    /** The arithmetic of products with quantised weights, unless kernels are portable or the CPU's: "bytes", "f32" or "f16". */
    one_token: string;
    /** One of these, or "matrices": halves in matrix units. */
    many_tokens: string;
    /** Whether results of many tokens are held to 1e-4 of PyTorch's, as a text encoder's are. */
    exact: boolean;
    chosen: string;
    /** The times of a layer of the model's sizes, for one token and for 128; empty where nothing was compared. */
    measured: { kernels: Kernels; one_token_us: number; many_tokens_us: number }[];
  };
  /** How keys and values of the context are kept, and who chose that: "usual", "asked for" or, where the usual one does not fit, "memory"; null for text encoders. */
  kv: { type: KvType; chosen: string } | null;
  /** The smaller model that proposes tokens, with its bytes on the device; null: there is none. */
  draft: { name: string; size: number; gpu_bytes: number } | null;
  /**
   * The head that the model brings along to propose tokens, with its bytes on the device, or why it goes without; null: it
   * has none, or a draft proposes in its place.
   */
  head: { gpu_bytes: number; fault: string | null } | null;
  device: Device;
  adapters: AppliedAdapter[];
  /** The model in a line, and the same in English. */
  messages: EngineMessage[];
  facts: string;
  /** Whether nothing had to be fetched. */
  from_cache: boolean;
}

/** A language model that can be talked to, or a program that Python finds as `graph`; `about` is Markdown. */
export type OpenedFiles = (LoadedModel | { name: string; methods: string[] }) & { about: string };

// Completions ------------------------------------------------------------------------------------

/** With `stream: true` an async iterator of chunks; who leaves the loop early stops the generation. */
export interface Completions<Request, Whole, Chunk> {
  create(request: Request & { stream: true }): AsyncGenerator<Chunk, void, undefined>;
  create(request: Request & { stream?: false | null }): Promise<Whole>;
  create(request: Request & { stream?: boolean | null }): AsyncGenerator<Chunk, void, undefined> | Promise<Whole>;
}

/** Every field is checked: one that is wrong or unknown is refused by name. null stands for the default. */
export interface GenerationRequest {
  /** The name of a model that is loaded; if not given, the one that was loaded last. */
  model?: string | null;
  /**
   * From 0 (always the likeliest token) to 2. A request that has none of temperature, top_p, top_k, min_p and the
   * penalties is answered as the page and the terminal answer: the engine's defaults (`defaults` in site.json). One that
   * has any of them gets what it names; the others change nothing (temperature 1, top_p 1).
   */
  temperature?: number | null;
  top_p?: number | null;
  /** Ours: 0 is off. */
  top_k?: number | null;
  min_p?: number | null;
  /** Ours: over prompt and answer; 1 is off. */
  repetition_penalty?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  /** Added to the logits of these token ids. */
  logit_bias?: Record<string, number> | null;
  seed?: number | null;
  /** Ours: one of `samplers()` by name, with its parameters, or several in their order. */
  sampler?: NamedSampler | NamedSampler[] | null;
  /** As many as the context holds if not given. */
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  /** At most 16 texts, none of them empty. */
  stop?: string | string[] | null;
  logprobs?: boolean | null;
  /** From 0 to 20; needs `logprobs`. */
  top_logprobs?: number | null;
  response_format?: ResponseFormat | null;
  /** Several answers, from 1 to 16, one after the other. */
  n?: number | null;
  /** Marks of the caller's own: nobody here reads them. */
  user?: string | null;
  metadata?: Record<string, string> | null;
  /** Need `stream: true`. */
  stream_options?: { include_usage?: boolean; include_progress?: boolean } | null;
  /** Ours: goes on after an end token, for benchmarks and tests. */
  ignore_eos?: boolean | null;
  /** Ours: whether tokens are proposed, from the text so far, by a draft or by the model's own head, and verified together; "auto", the default, measures. */
  speculate?: "auto" | boolean | null;
  /** Ours: what happens when a chat outgrows the context. */
  context_overflow?: "error" | "drop_oldest" | "slide" | null;
  /** Ours: stops the generation; the answer so far has the finish_reason "abort". */
  signal?: AbortSignal;
}

export type ResponseFormat =
  | { type: "text" | "json_object" }
  | { type: "json_schema"; json_schema: { name?: string; schema: object | boolean; [other: string]: unknown } };

export interface ChatRequest extends GenerationRequest {
  messages: Message[];
  tools?: Tool[] | null;
  /** "required" and a tool's name hold by a grammar: the answer is a call whose arguments fit the tool's schema. */
  tool_choice?: "none" | "auto" | "required" | { type: "function"; function: { name: string } } | null;
  parallel_tool_calls?: boolean | null;
  reasoning_effort?: string | null;
  /** Others' names: variables of the chat template, and the one that most templates know. */
  chat_template_kwargs?: Record<string, unknown> | null;
  enable_thinking?: boolean | null;
  /** Others' name: "none" leaves thoughts in the content. */
  reasoning_format?: "auto" | "none" | null;
  /** Ours: the answer is the rest of the last message, which is the assistant's. */
  continue_final_message?: boolean | null;
  /**
   * Ours: the tokens of that last message, as an answer's `token_ids` have them. They take the place of its content in
   * the prompt, so that it is continued exactly; needs `continue_final_message`.
   */
  continue_token_ids?: number[] | null;
}

/** One of the two prompts. */
export interface CompletionRequest extends GenerationRequest {
  prompt?: string | null;
  prompt_token_ids?: number[] | null;
}

type Text = string | TextPart[];

interface TextPart {
  type: "text";
  text: string;
}

/** For models that see: PNG, JPEG, WebP, or the first frame of a GIF, as a data: address. */
interface ImagePart {
  type: "image_url";
  /** With "low", the whole image is seen once, and not its parts as well: it takes fewer tokens. */
  image_url: { url: string; detail?: "low" | "high" | "auto" };
}

export type Message =
  | { role: "user"; content: string | (TextPart | ImagePart)[] }
  | { role: "system" | "developer"; content: Text }
  | { role: "assistant"; content?: Text | null; tool_calls?: ToolCall[]; reasoning_content?: string | null }
  | { role: "tool"; content: Text; tool_call_id: string };

export interface Tool {
  type: "function";
  function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean | null };
}

export interface ToolCall {
  id: string;
  type: "function";
  /** The arguments are the JSON text of an object. */
  function: { name: string; arguments: string };
}

/** What a model said; what it thought, where its family tells thoughts apart. */
export interface AnswerMessage {
  role: "assistant";
  /** null where it only calls tools. */
  content: string | null;
  /** No model here has words of its own for that. */
  refusal: null;
  reasoning_content?: string;
  tool_calls?: ToolCall[];
}

/** A call comes once it is whole: its head first, then its arguments. */
export interface Delta {
  role?: "assistant";
  content?: string;
  reasoning_content?: string;
  tool_calls?: {
    index: number;
    id?: string;
    type?: "function";
    function: { name?: string; arguments: string };
  }[];
}

interface Head<Kind extends string> {
  id: string;
  object: Kind;
  /** Seconds since 1970. */
  created: number;
  model: string;
}

interface Choice {
  index: number;
  /** null until the last chunk. */
  finish_reason: "stop" | "length" | "tool_calls" | "abort" | null;
  /** Ours. */
  token_ids: number[];
  logprobs: { content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[]; refusal: null } | null;
}

export interface TokenLogprob {
  token: string;
  token_id: number;
  logprob: number;
  /** `token_id` says which token it is. */
  bytes: null;
}

export interface ChatCompletion extends Head<"chat.completion"> {
  choices: [Choice & { message: AnswerMessage }, ...(Choice & { message: AnswerMessage })[]];
  usage: Usage;
}

export interface Completion extends Head<"text_completion"> {
  choices: [Choice & { text: string }, ...(Choice & { text: string })[]];
  usage: Usage;
}

/** A chunk that tells the progress or the usage has no choice. */
interface ChunkFacts {
  /** With `include_progress`: how much of the prompt is read. */
  progress?: {
    prefilled: number;
    total: number;
    /** The model's shaders are compiled first, once. */
    compiling?: true;
  };
  /** With `include_usage`: the last chunk. */
  usage?: Usage;
}

export interface ChatCompletionChunk extends Head<"chat.completion.chunk">, ChunkFacts {
  choices: (Choice & { delta: Delta })[];
}

export interface CompletionChunk extends Head<"text_completion">, ChunkFacts {
  choices: (Choice & { text: string })[];
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** Of the prompt, found in the cache of the turn before. */
  cached_tokens: number;
  completion_tokens_details?: {
    /** About; where there were thoughts. */
    reasoning_tokens?: number;
    /** Of the tokens that were proposed, those that came true, and the others; where there were any. */
    accepted_prediction_tokens?: number;
    rejected_prediction_tokens?: number;
  };
  /** How the answer went, and the same in English in a line. */
  messages: EngineMessage[];
  summary: string;
  extra: {
    time_to_first_token_s: number | null;
    /** Of that, for what images become; where there were any. */
    images_s?: number;
    /** Of the tokens that were proposed, those by a draft or the model's own head; where any were proposed. */
    drafted_tokens?: number;
    /** Of these, those that came true. */
    accepted_drafted_tokens?: number;
    prefill_tokens_per_s: number | null;
    decode_tokens_per_s: number | null;
    /** The settings that the answer was drawn with, and the seed, also where the request names none. */
    sampling: Sampling;
    /** Messages that were left out, to make room. */
    dropped_messages?: number;
    /** Tokens that slid out of the context so that the answer could go on. */
    slid_tokens?: number;
    // What a token after the first cost, on average.
    dispatches_per_token?: number;
    submits_per_token?: number;
    bytes_written_per_token?: number;
    bytes_read_per_token?: number;
    python_ms_per_token?: number | null;
    submitting_ms_per_token?: number;
  };
}

export interface Sampling {
  temperature: number;
  top_k: number;
  top_p: number;
  min_p: number;
  repetition_penalty: number;
  frequency_penalty: number;
  presence_penalty: number;
  seed: number;
}

export interface PythonOptions {
  /** Hears what the code prints, as it happens; else that goes to the browser's console. */
  onPrint?: (text: string) => void;
  /** Ends the code: what awaits at once, what computes as `interrupt` does. */
  signal?: AbortSignal;
  /** Resolves to text for people in place of JSON: long values are cut, None is nothing. */
  asText?: boolean;
}

// Embeddings -------------------------------------------------------------------------------------

export interface EmbeddingRequest {
  /** A text, the tokens of one, or a list of either. */
  input: string | string[] | number[] | number[][];
  model?: string | null;
  /** "base64" holds little-endian 32-bit floats. */
  encoding_format?: "float" | "base64" | null;
  /** Only so many numbers of each, at length 1 again. */
  dimensions?: number | null;
  user?: string | null;
  /** Ours: what is taken of the hidden states; if not given, what a text encoder's files say, and of other models the mean. */
  pooling?: "mean" | "last" | "cls" | "mean_sqrt_len" | "weightedmean" | null;
  /** Ours: which of a text encoder's own prompts stands before each text, such as "query". */
  prompt_name?: string | null;
  /** Ours. */
  signal?: AbortSignal;
}

export interface Embeddings<Vector = number[]> {
  object: "list";
  /** Of length 1 each, unless a text encoder's own files say otherwise. */
  data: { object: "embedding"; index: number; embedding: Vector }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

export interface RerankRequest {
  query: string;
  documents: (string | { text: string })[];
  model?: string | null;
  /** Only so many, the best ones. */
  top_n?: number | null;
  return_documents?: boolean | null;
}

export interface Ranking {
  object: "list";
  model: string;
  results: { index: number; relevance_score: number; document?: { text: string } }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

// The rest ---------------------------------------------------------------------------------------

export interface VerifyOptions {
  onProgress?: (progress: { phase: string; done: number; total: number; messages: EngineMessage[] }) => void;
  signal?: AbortSignal;
  /** All goldens, which takes minutes on a software GPU. */
  thorough?: boolean;
}

/** In units of the RMS of PyTorch's numbers; "Infinity" where something computed is not a number. */
export type DifferenceInRms = number | "Infinity";

export interface VerifyReport {
  ok: boolean;
  /** What it found, and the same in English. */
  messages: EngineMessage[];
  summary: string;
  /** Of the layers, as Markdown. */
  table: string;
  layers: { layer: string; relative_rms: DifferenceInRms; worst: DifferenceInRms; ok: boolean }[];
  lengths: { tokens: number; relative_rms: DifferenceInRms; worst: DifferenceInRms; ok: boolean }[];
  texts: { prompt: string; tokens: number; identical: boolean; first_difference: number | null }[];
  /** Layers that the graph does not name. */
  not_checked: string[];
  worst_layer: string | null;
  /** Where it begins, when a difference is too large. */
  first_wrong_layer: string | null;
  adapter: string;
  seconds: number;
}

export interface Notice {
  kind: "storage" | "device_lost" | "models" | "moved" | "recovered" | "memory";
  /** What it says, and the same in English. */
  code: string;
  facts: EngineMessage["facts"];
  text: string;
  /** `storage`: facts where they are known. */
  needed_bytes?: number;
  free_bytes?: number;
}
