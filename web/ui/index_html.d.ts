// The elements of index.html that scripts use, by their ids.

type Templates = Record<
  "assistant" | "busy" | "certaintyView" | "choiceRow" | "choicesView" | "messageMenu" | "chatMenu" | "chatRow" | "copyCode" | "failureDetail" | "hubRow" | "modelRow" | "notice" | "ownRow" | "ready" | "shelfRow" | "suggestion" | "user" | `failure-${string}`,
  HTMLTemplateElement
>;
type Buttons = Record<
  | "cancelLoad" | "whyNotebook" | "copyFile" | "deleteLoaded" | "hubLoad" | "hubLook" | "hubPersist" | "hubRetry" | "hubWithdraw" | "keepChats" | "keepLinked" | "load" | "newChat" | "rememberFile" | "resetSettings"
  | "forgetPrompt" | "joinEngine" | "keepLoaded" | "keepPrompt" | "stop" | "stopEditing" | "toggleSidebar" | "unload" | "verify",
  HTMLButtonElement
>;
type Forms = Record<"composer" | "promptFieldsForm" | "hubChoices" | "hubForm" | "hubTokenForm" | "loadForm" | "settingsForm", HTMLFormElement>;
type Inputs = Record<"attachFiles" | "chatTitle" | "files" | "hubName" | "hubToken" | "hubTokenKept" | "importFile" | "shareStored", HTMLInputElement>;
type TextAreas = Record<"draft" | "system", HTMLTextAreaElement>;
type Selects = Record<"certainty" | "compareLeft" | "compareRight" | "language" | "model" | "prompts", HTMLSelectElement>;
type Dialogs = Record<"compare" | "hubAsk" | "models" | "opened" | "settings" | "why", HTMLDialogElement>;
/** Of answers in JSON. */
type OfJson = Record<"json", HTMLDialogElement> & Record<"jsonForm", HTMLFormElement> & Record<"jsonSchema", HTMLTextAreaElement> & Record<"useJson", HTMLInputElement>
  & Record<"checkJson" | "endJson", HTMLButtonElement> & Record<"inJson" | "jsonExamples" | "jsonFault" | "jsonSound" | "jsonTools" | "toolsJson", HTMLElement>;
type Others = Record<
  | "about" | "announcer" | "promptFieldsRows" | "compareFacts" | "compareText" | "whyFacts" | "whyLegend" | "whyPrompt" | "whyPromptFacts" | "chats" | "contextText" | "editing" | "facts" | "failure" | "guest" | "guestHeading" | "rules" | "loadingHeading"
  | "hubConsent" | "hubError" | "hubFiles" | "hubFound" | "hubHost" | "hubResults" | "hubSection" | "hubStatus" | "hubStorage" | "hubTerms" | "kernelFacts" | "keeping" | "keepingText" | "layers" | "loadError" | "loadedFacts" | "loadedName" | "loadedPlain" | "loadedStatus" | "sharing" | "sharingStatus" | "messages" | "modelFacts" | "modelName" | "modelRows" | "notices" | "ownFiles"
  | "progressText" | "scrim" | "scroller" | "shelf" | "sidebar" | "status" | "storedRows" | "suggested" | "twice" | "unkept" | "verdict"
  | `phase-${string}` | `step-${string}`,
  HTMLElement
>;

/** Of what is read, found, attached and kept. */
type OfReading = Record<"attachment" | "learning" | "quotes" | "quoteRow" | "reasoning", HTMLTemplateElement>
  & Record<"attach" | "photograph" | "dictate" | "readerCopy" | "latest" | "laterPage" | "reloadPage" | "showShortcuts", HTMLButtonElement>
  & Record<"attached" | "dropZone" | "linked" | "temporary" | "newVersion" | "readerFacts" | "readerName" | "readerText" | "tooLong", HTMLElement>
  & Record<"attachFolder" | "takePhoto" | "findChats" | "folderName", HTMLInputElement>
  & Record<"folders", HTMLDataListElement>
  & Record<"dictateAsk" | "promptFields" | "folder" | "reader" | "shortcuts", HTMLDialogElement>;

type OfDock = Record<"dockFrame", HTMLTemplateElement>
  & Record<"dockClose" | "dockExport" | "dockLink" | "openDock", HTMLButtonElement>
  & Record<"dock" | "dockExports" | "dockFault" | "dockLook" | "dockPanels" | "dockProgress" | "dockSize" | "dockTabs" | "dockTitle", HTMLElement>;

type OfTools = Record<"serverRow" | "toolCall" | "toolRow", HTMLTemplateElement>
  & Record<"forgetPermissions" | "openTools", HTMLButtonElement>
  & Record<"serverError" | "serverRows" | "serverStatus" | "toolRows" | "toolsUnfit", HTMLElement>
  & Record<"serverToken" | "serverTokenKept" | "serverUrl" | "useTools", HTMLInputElement>
  & Record<"serverForm", HTMLFormElement>
  & Record<"tools", HTMLDialogElement>;

type OfSteering = Record<"adapterChip", HTMLTemplateElement>
  & Record<"adapters" | "samplerAbout" | "samplerFields", HTMLElement>
  & Record<"samplerChosen", HTMLInputElement>
  & Record<"sampler", HTMLSelectElement>;

export type Elements = OfReading & OfJson & OfDock & OfSteering & OfTools & Templates & Buttons & Forms & Inputs & TextAreas & Selects & Dialogs & Others & {
  contextMeter: HTMLMeterElement;
  hubAccess: HTMLDetailsElement;
  hubGate: HTMLAnchorElement;
  hubPage: HTMLAnchorElement;
  progress: HTMLProgressElement;
};
