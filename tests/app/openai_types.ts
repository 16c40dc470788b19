// OpenAI's own types and ours, one assigned to the other; never run. tests/app/test_openai_types.py gives it to tsc.

import type OpenAI from "openai";
import type {
  ChatCompletion, ChatCompletionChunk, ChatRequest, CompletionRequest, Embeddings, EmbeddingRequest, Inpage, Message, Tool,
} from "../../web/inpage";

type Chat = OpenAI.Chat.Completions.ChatCompletion;
type Chunk = OpenAI.Chat.Completions.ChatCompletionChunk;
type Ended = "stop" | "length" | "tool_calls";

/** A stopped answer is our own: nobody can stop OpenAI's and keep what was written. */
const ended = (reason: ChatCompletion["choices"][0]["finish_reason"]): Ended =>
  reason === "abort" || reason === null ? "stop" : reason;

// Answers: what reads OpenAI's reads ours.

export const whole = (answer: ChatCompletion): Chat => ({
  ...answer,
  choices: answer.choices.map((choice) => ({ ...choice, finish_reason: ended(choice.finish_reason) })),
});

export const chunk = (part: ChatCompletionChunk): Chunk => ({
  ...part,
  choices: part.choices.map((choice) => ({ ...choice, finish_reason: choice.finish_reason && ended(choice.finish_reason) })),
});

export const vectors = (found: Embeddings): OpenAI.CreateEmbeddingResponse => found;

// Requests: ours are OpenAI's, but for what is said to be our own.

type Ours =
  | "top_k" | "min_p" | "repetition_penalty" | "ignore_eos" | "context_overflow" | "signal" | "continue_final_message" | "continue_token_ids"
  | "chat_template_kwargs" | "enable_thinking" | "reasoning_format" | "reasoning_effort" | "stream_options" | "response_format" | "tools" | "speculate";

/** null stands for the default here; OpenAI's types leave such fields out. */
type Given<Request> = { [Name in keyof Request]: Exclude<Request[Name], null> };

export const request = (asked: Given<Omit<ChatRequest, Ours>>, model: string): OpenAI.Chat.ChatCompletionCreateParamsNonStreaming =>
  ({ ...asked, model });

export const tools = (given: Tool[]): OpenAI.Chat.ChatCompletionTool[] => given;

export const messages = (given: Message[]): OpenAI.Chat.ChatCompletionMessageParam[] => given;

export const embedding = ({ input, dimensions }: EmbeddingRequest): OpenAI.EmbeddingCreateParams =>
  ({ input, model: "any", ...(dimensions ? { dimensions } : {}) });

// What OpenAI's client sends, goes here as well: texts and tools.

export const sent = (inpage: Inpage, given: OpenAI.Chat.ChatCompletionFunctionTool[]) =>
  inpage.chat.completions.create({
    messages: [{ role: "user", content: "Hello" }] satisfies OpenAI.Chat.ChatCompletionMessageParam[],
    tools: given,
    tool_choice: "required" satisfies OpenAI.Chat.ChatCompletionToolChoiceOption,
    parallel_tool_calls: false,
    n: 2,
    user: "ada",
    metadata: { a: "b" },
  });

/** A program's turn with tools, as it is written for OpenAI's client. */
export async function turn(inpage: Inpage, history: Message[], known: Tool[], call: (name: string, given: unknown) => string) {
  const { choices: [{ message }] } = await inpage.chat.completions.create({ messages: history, tools: known });
  history.push(message);
  for (const { id, function: { name, arguments: text } } of message.tool_calls ?? []) {
    history.push({ role: "tool", tool_call_id: id, content: call(name, JSON.parse(text)) });
  }
}

export const completion = ({ prompt, seed }: CompletionRequest): OpenAI.CompletionCreateParams =>
  ({ model: "any", prompt: prompt ?? "", seed: seed ?? null });

// @ts-expect-error: a stopped answer says so, and OpenAI's types know no such end
export const stopped = (answer: ChatCompletion): Chat => answer;
