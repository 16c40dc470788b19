// The elements of index.html that scripts use, by their ids.

type Templates = Record<
  "assistant" | "busy" | "chatRow" | "copyCode" | "failureDetail" | "hubRow" | "modelRow" | "notice" | "ownRow" | "shelfRow" | "user" | `failure-${string}`,
  HTMLTemplateElement
>;
type Buttons = Record<
  | "cancelLoad" | "copyFile" | "hubLoad" | "hubLook" | "hubPersist" | "hubWithdraw" | "keepChats" | "load" | "newChat" | "rememberFile" | "resetSettings" | "run"
  | "forgetPrompt" | "keepPrompt" | "stop" | "stopEditing" | "stopPython" | "toggleSidebar" | "unload" | "verify",
  HTMLButtonElement
>;
type Forms = Record<"composer" | "consoleForm" | "hubChoices" | "hubForm" | "hubTokenForm" | "loadForm" | "settingsForm", HTMLFormElement>;
type Inputs = Record<"attachFiles" | "chatTitle" | "files" | "hubName" | "hubToken" | "hubTokenKept" | "importFile", HTMLInputElement>;
type TextAreas = Record<"code" | "draft" | "system", HTMLTextAreaElement>;
type Selects = Record<"example" | "language" | "model" | "prompts", HTMLSelectElement>;
type Dialogs = Record<"console" | "hubAsk" | "models" | "opened" | "settings", HTMLDialogElement>;
type Others = Record<
  | "about" | "announcer" | "chats" | "chatTools" | "contextText" | "editing" | "facts" | "failure"
  | "hubConsent" | "hubError" | "hubFiles" | "hubFound" | "hubHost" | "hubSection" | "hubStatus" | "hubStorage" | "keeping" | "keepingText" | "layers" | "loadError" | "loadedFacts" | "loadedName" | "loadedPlain" | "messages" | "modelFacts" | "modelName" | "modelRows" | "notices" | "output" | "ownFiles"
  | "progressText" | "pythonStatus" | "scrim" | "scroller" | "shelf" | "sidebar" | "status" | "twice" | "unkept" | "verdict"
  | `phase-${string}` | `step-${string}`,
  HTMLElement
>;

/** Of what is read, found, attached and kept. */
type OfReading = Record<"attachment" | "reasoning", HTMLTemplateElement>
  & Record<"attach" | "dictate" | "exportMarkdown" | "latest" | "laterPage" | "pinChat" | "reloadPage" | "showShortcuts", HTMLButtonElement>
  & Record<"attached" | "dropZone" | "newVersion", HTMLElement>
  & Record<"findChats", HTMLInputElement>
  & Record<"shortcuts", HTMLDialogElement>;

export type Elements = OfReading & Templates & Buttons & Forms & Inputs & TextAreas & Selects & Dialogs & Others & {
  contextMeter: HTMLMeterElement;
  hubAccess: HTMLDetailsElement;
  progress: HTMLProgressElement;
};

/** In the element of a step on the way to a model. */
export type ShowStep = (phase: import("../inpage.d.ts").LoadProgress["phase"] | "Python", text: string, state: "" | "running" | "done") => void;

/** `begin` is what loads it, unless the engine does from there. */
export type LoadFrom = (where: string | File[], name: string, begin?: (options: any) => Promise<any>) => Promise<string | undefined>;

/** As a tag of templates. */
export type Tell = (parts: TemplateStringsArray, ...values: (string | number)[]) => string;

/** A file of languages/: the page's texts by their English, the engine's messages by their codes. */
export interface Table {
  texts: Record<string, string>;
  messages: Record<string, string>;
}

export type Fact = import("../inpage.d.ts").EngineMessage["facts"][string];

/** Whose script comes when it is opened. */
export type Dialog = "console" | "models" | "settings";

/** What a button says that a click on it does. */
export interface ButtonData {
  /** With its message (turns.js). */
  act?: string;
  chooses?: "attachFiles" | "files" | "importFile";
  opens?: Dialog;
  /** For the list of chats. */
  tool?: keyof typeof import("./chat_tools.js");
}

/** A module's functions, which answer once it is fetched. */
export type Lazy<Module> = {
  [Name in keyof Module]: Module[Name] extends (...given: infer Given) => infer Result
    ? (...given: Given) => Promise<Awaited<Result> | undefined>
    : never;
};

export type Fetched = <Module>(arriving: Promise<Module>) => Promise<Module | void>;
export type ToLazy = <Module extends object>(load: () => Promise<Module>) => Lazy<Module>;

export type FromNpm = <Name extends keyof import("./rendered.js").Libraries>(name: Name) => Promise<import("./rendered.js").Libraries[Name]>;
