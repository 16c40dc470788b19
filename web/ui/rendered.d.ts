// What the rendering worker is given and gives, and the libraries that the page and it take from npm.

/** Markdown as HTML: `length` characters of the text are settled, the rest may change as it grows. */
export interface RenderedMarkdown {
  length: number;
  settled: string;
  rest: string;
}

/** A text for the rendering worker. */
export interface RenderJob {
  text: string;
  /** Of Markdown. */
  isGrowing?: boolean;
  /** Of code. */
  language?: string;
  /** Of a formula: whether it has lines of its own. */
  isDisplay?: boolean;
}

/** What the rendering worker makes of a text, by its kind. */
interface RenderResults {
  markdown: RenderedMarkdown;
  code: string;
  maths: string;
}

export type RenderInWorker = <Kind extends keyof RenderResults>(kind: Kind, job: RenderJob, isWanted?: () => boolean) => Promise<RenderResults[Kind]>;

/** A text that waits for the rendering worker. */
export interface Queued {
  kind: keyof RenderResults;
  job: RenderJob;
  isWanted: () => boolean;
  resolve: (result: any) => void;
  reject: (fault: Error) => void;
}

/** What the page takes from npm, by its files. */
export interface Libraries {
  "dompurify.js": typeof import("dompurify");
  "highlight.js": { default: Highlighter };
  "idb.js": typeof import("idb");
  "katex.js": typeof import("katex");
  "marked.js": typeof import("marked");
  "pdf.js": typeof import("pdfjs-dist");
}

/** Its package has no types. */
interface Highlighter {
  getLanguage(name: string): object | undefined;
  highlight(code: string, options: { language: string, ignoreIllegals: boolean }): { value: string };
}
