import { createEngine, type EngineProgress } from "inpage";

const [progress, answer] = ["#progress", "#answer"].map((name) => document.querySelector(name) as Element);

function show({ phase, fraction }: EngineProgress): void {
  progress.textContent = `${phase} ${Math.round(100 * fraction)}%`;
}

const engine = await createEngine({
  assetsURL: "/inpage/", // where package.json's script puts the package's files, which are no part of the bundle
  models: ["https://models.example.org/SmolLM2-135M-Instruct/"],
  onProgress: show,
});
await engine.load("SmolLM2-135M-Instruct");
const messages = [{ role: "user" as const, content: "What is gravity?" }];
for await (const chunk of engine.chat.completions.create({ messages, stream: true })) {
  answer.append(chunk.choices[0]?.delta.content ?? "");
}
progress.textContent = "done";
