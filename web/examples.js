// What the console offers to run: small pieces of Python that show the engine at work.

export const EXAMPLES = {
  "One kernel, any length": `from py_runtime.dtypes import F32
from py_runtime.graph import Graph
from py_runtime.program_writer import ProgramWriter

writer = ProgramWriter()
weight = np.linspace(0.5, 1.5, 576, dtype=np.float32)
x = writer.input("x", (64, 576), F32, dynamic=[0])
out = writer.tensor((64, 576), F32)
writer.op("et_vk.rms_norm.default",
          x, writer.constant("weight", weight), 1e-5, out)
writer.output(out)
graph = await Graph.load(device, writer.program(), writer.constants)

differences = {}
for rows in (64, 7, 1):  # one graph, any live shape
    rng = np.random.default_rng(rows)
    data = rng.standard_normal((rows, 576), np.float32)
    (on_gpu,) = await graph.run([data])
    scale = np.sqrt((data * data).mean(-1, keepdims=True) + 1e-5)
    in_numpy = data / scale * weight
    differences[f"{rows} rows"] = float(abs(on_gpu - in_numpy).max())
graph.unload()
differences`,
  "A question for the default model": `from py_runtime.model import Model

if "model" not in globals():
    url = site + "models/SmolLM2-135M-Instruct/"
    model = await Model.load(device, url)

question = "What is gravity?"
prompt = model.chat_tokens([{"role": "user", "content": question}])
answer = []
async for token in model.greedy(prompt, most_tokens=40):
    if token == model.tokenizer.id_of("<|im_end|>"):
        break
    answer.append(token)
model.tokenizer.decode(answer)`,
};
