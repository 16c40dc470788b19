// English. The page's own texts stand where they are used; here are the messages, by their codes. py_runtime/base/messages.py
// has the codes of the engine, their facts and the formats of facts; the last ones are the page's own.

/** @type {Record<string, string>} */
export const texts = {};

/** @type {Record<string, string>} */
export const messages = {
  // How far something is
  bytes_done: "{done:bytes} of {total:bytes}",
  count_done: "{done} of {total}",
  download_speed: "{bytes_per_second:bytes}/s",
  time_left: "{seconds:duration} left",
  verifying_layers: "Verifying layers: {share:.0%}",
  verifying_logits: "Verifying logits: {share:.0%}",
  verifying_text: "Verifying answers: {share:.0%}",

  // Models
  model_name: "{name}",
  model_parameters: "{parameters:millions} million parameters",
  model_size: "{size:bytes}",
  model_context: "context of {tokens} tokens",
  model_gpu_memory: "{gpu_bytes:bytes} of GPU memory",
  model_quantisation: "{quantisation}",
  model_faulty: "Cannot be loaded: {fault}.",
  stored_whole: "stored in this browser",
  stored_in_part: "partly downloaded",
  stored_bytes: "{stored:bytes} already downloaded",
  too_large_for_gpu: "Too large for this GPU: it needs a buffer of {needed:bytes}, and the limit here is {limit:bytes}.",
  tensor_too_large_for_gpu: "Too large for this GPU: it has a tensor of about {needed:bytes}, and the limit here is {limit:bytes}.",
  too_large_for_storage: "Not enough storage: it needs {needed:bytes}, and this browser has {free:bytes} left.",
  storage_off: "This browser does not store files for this page: download the file yourself and drop it here.",
  no_gguf_files: "this repository has no GGUF files: look for a name that ends in -GGUF",

  // How an answer went
  answer_stopped: "Stopped",
  answer_cut: "Token limit reached",
  answer_tokens: "{tokens} {tokens:token|tokens}",
  answer_seconds: "{seconds:.1f} s",
  answer_seconds_spent: "{seconds:.1f} s ({spent})",
  spent_preparing: "{seconds:.1f} preparing",
  spent_reading: "{seconds:.1f} reading",
  spent_writing: "{seconds:.1f} writing",
  answer_speed: "{tokens_per_second:.1f} tok/s",
  messages_left_out: "{count} oldest {count:message|messages} left out",

  // Whether a GPU computes as PyTorch does
  verified_in_page: "This browser and GPU compute this model as PyTorch does: {findings:, and }.",
  verified_natively: "This GPU computes this model as PyTorch does: {findings:, and }.",
  largest_layer_difference: "the largest difference in any layer is {share:percent}",
  largest_result_difference: "the largest difference in the results is {share:percent}",
  same_tokens: "the first {tokens} {tokens:token|tokens} of {answers} {answers:answer|answers} are the same",
  wrong_in_page: "Something computes wrongly here: {faults:; }. To fix it, update the graphics driver or try another browser.",
  wrong_natively: "Something computes wrongly here: {faults:; }. To fix it, update the graphics driver.",
  layer_differs: "{layer} differs by {share:percent}",
  layer_not_finite: "{layer} has values that are NaN or infinite",
  results_differ: "the results after {tokens} {tokens:token|tokens} differ by {share:percent}",
  results_not_finite: "the results after {tokens} {tokens:token|tokens} are NaN or infinite",
  answer_differs: "an answer differs from PyTorch's at token {place}",
  layer_numbered: "layer {number} of {count}",
  layer_embedding: "the embedding",
  layer_last_norm: "the last norm",
  layer_named: "{name}",
  layers_not_checked: "Not checked, since the graph does not name them: {names}.",

  // Notices
  model_loaded: "{name} is loaded.",
  model_unloaded: "{name} is no longer loaded.",
  only_stored_models: "Only models in this browser's storage are listed: {reason}.",
  storage_refuses_page: "This browser does not let the page store files ({reason}): the model stays in memory and will be downloaded again next time.",
  storage_too_small: "{name} needs {needed_bytes:bytes} of this browser's storage, which has {free_bytes:bytes} left: the model stays in memory and will be downloaded again next time.",
  storage_refuses_model: "This browser's storage refused {name} ({reason}): the model stays in memory and will be downloaded again next time.",
  storage_refuses_file: "This browser's storage refused a file of {name} ({reason}): the model stays in memory, and what is not stored will be downloaded again next time.",
  device_lost: "{reason}. Opening it again and continuing where it stopped.",
  device_recovered: "The GPU is back; nothing was lost.",

  // Errors, which other texts may hold: no capital, no full stop
  aborted: "cancelled",
  no_model: "no model is loaded: load one first",
  prompt_too_long: "this chat has {prompt_tokens} tokens, and the model's context holds {context}, including the answer: shorten it, or drop the oldest turns",
  prompt_far_too_long: "this chat has at least {prompt_tokens} tokens, and the model's context holds {context}, including the answer: shorten it, or drop the oldest turns",
  gpu_buffer_too_small: "{name} needs a GPU buffer of {needed:bytes}, and this GPU allows {limit:bytes} ({limit_name}): choose a smaller model, or use another browser or GPU",
  smaller_models: "{fault}. Smaller models here: {models}",
  smaller_model: "{name} ({gpu_bytes:bytes})",
  model_not_loadable: "{name} cannot be loaded: {fault}",
  no_such_model: "no model found with the name “{name}”; there are: {names}",
  no_models_here: "no model found with the name “{name}”: this site has none",
  no_stored_copy: "no copy of {name} is stored here",
  copy_too_large: "a copy needs {needed:bytes} of this browser's storage, which has {free:bytes} left: delete stored models, or leave the file where it is",
  download_too_large: "{name} needs {needed:bytes} of storage, and {free:bytes} are left: delete stored models, or choose a smaller file; one that you download yourself can be dropped on the page",
  storage_refuses_download: "files cannot be stored here ({reason}): download {name} yourself and drop the file on the page",
  hub_consent: "the Hugging Face Hub was not contacted, since you have not allowed it: it would learn this machine's address and which model you want",

  // The page's own, kept in chats or named in shelf.json
  answer_interrupted: "Interrupted by a reload",
  good_at_trying_out: "trying things out: small enough for a phone",
  good_at_rewording: "short answers and rewriting, in English",
  good_at_thinking: "thinking before it answers, in many languages",
  good_at_quick_answers: "quick answers in many languages",
  good_at_summaries: "summaries and everyday questions",
  good_at_code: "writing and explaining code",
  good_at_reasoning: "reasoning, arithmetic, many languages",
  good_at_long_texts: "longer texts, following instructions",
  good_at_prose: "good prose, for GPUs with 8 GB or more",
};
