"""Messages from the engine to people: a stable code with the facts it is about.

Pages word a message in their user's language (web/ui/languages). The table here words it in English
for the terminal, for programs, and as the text of errors; it also declares which facts a code has.
A template holds facts in braces: `{name}`, or with a format behind a colon, which is one of
FORMATS, one of Python's own, the forms of a plural (`{count:message|messages}`), or what stands
between the items of a list (`{faults:; }`).
"""

from collections.abc import Callable, Sequence
from functools import cache
from string import Formatter
from typing import Any, TypedDict

from py_runtime.base.sizes import duration, in_words, millions, percent

SEPARATOR = " · "  # between messages that make up a line


class Message(TypedDict):
    """A fact is a number, a text, a message, or a list of these; sizes are in bytes."""

    code: str
    facts: dict[str, Any]


ENGLISH: dict[str, str] = {
    # How far something is
    "bytes_done": "{done:bytes} of {total:bytes}",
    "count_done": "{done} of {total}",
    "download_speed": "{bytes_per_second:bytes}/s",
    "time_left": "{seconds:duration} left",
    "verifying_layers": "Verifying layers: {share:.0%}",
    "verifying_logits": "Verifying logits: {share:.0%}",
    "verifying_text": "Verifying answers: {share:.0%}",
    # Models
    "model_name": "{name}",
    "model_parameters": "{parameters:millions} million parameters",
    "model_size": "{size:bytes}",
    "model_context": "context of {tokens} tokens",
    "model_gpu_memory": "{gpu_bytes:bytes} of memory",
    "model_quantisation": "{quantisation}",
    "model_faulty": "Cannot be loaded: {fault}.",
    "stored_whole": "stored in this browser",
    "stored_in_part": "partly downloaded",
    "stored_bytes": "{stored:bytes} already downloaded",
    "too_large_for_gpu": "Too large for this GPU: it needs a buffer of {needed:bytes}, and the "
    "limit here is {limit:bytes}.",
    "tensor_too_large_for_gpu": "Too large for this GPU: it has a tensor of about {needed:bytes}, "
    "and the limit here is {limit:bytes}.",
    "too_large_for_processor": "Too large for the processor: it needs {needed:bytes} of memory, "
    "and the limit here is {limit:bytes}.",
    "too_large_for_storage": "Not enough storage: it needs {needed:bytes}, and this browser has "
    "{free:bytes} left.",
    "storage_off": "This browser does not store files for this page: download the file yourself "
    "and drop it here.",
    "no_gguf_files": "this repository has no GGUF files: look for a name that ends in -GGUF",
    # How an answer went
    "answer_stopped": "Stopped",
    "answer_cut": "Maximum length reached",
    "context_full": "Context full",
    "answer_tokens": "{tokens} {tokens:token|tokens}",
    "answer_seconds": "{seconds:.1f} s",
    "answer_seconds_spent": "{seconds:.1f} s ({spent})",
    "spent_preparing": "{seconds:.1f} preparing",
    "spent_on_images": "{seconds:.1f} looking at images",
    "spent_reading": "{seconds:.1f} reading",
    "spent_writing": "{seconds:.1f} writing",
    "answer_speed": "{tokens_per_second:.1f} tok/s",
    "messages_left_out": "{count} oldest {count:message|messages} left out",
    "tokens_slid_out": "{count} oldest {count:token|tokens} forgotten",
    # Whether a device computes as PyTorch does
    "verified_in_page": "This browser and GPU compute this model as PyTorch does: "
    "{findings:, and }.",
    "verified_natively": "This GPU computes this model as PyTorch does: {findings:, and }.",
    "processor_verified_in_page": "This browser and processor compute this model as PyTorch does: "
    "{findings:, and }.",
    "processor_verified_natively": "This processor computes this model as PyTorch does: "
    "{findings:, and }.",
    "largest_layer_difference": "the largest difference in any layer is {share:percent}",
    "largest_result_difference": "the largest difference in the results is {share:percent}",
    "same_tokens": "the first {tokens} {tokens:token|tokens} of {answers} "
    "{answers:answer|answers} are the same",
    "wrong_in_page": "Something computes wrongly here: {faults:; }. To fix it, update the graphics "
    "driver or try another browser.",
    "wrong_natively": "Something computes wrongly here: {faults:; }. To fix it, update the "
    "graphics driver.",
    "processor_wrong_in_page": "Something computes wrongly here: {faults:; }. Try another browser, "
    "or report it as a bug of this page.",
    "processor_wrong_natively": "Something computes wrongly here: {faults:; }. Report it as a bug "
    "of inpage.",
    "layer_differs": "{layer} differs by {share:percent}",
    "layer_not_finite": "{layer} has values that are NaN or infinite",
    "results_differ": "the results after {tokens} {tokens:token|tokens} differ by {share:percent}",
    "results_not_finite": "the results after {tokens} {tokens:token|tokens} are NaN or infinite",
    "answer_differs": "an answer differs from PyTorch's at token {place}",
    "layer_numbered": "layer {number} of {count}",
    "layer_embedding": "the embedding",
    "layer_last_norm": "the last norm",
    "layer_named": "{name}",
    "layers_not_checked": "Not checked, since the graph does not name them: {names}.",
    # Notices
    "model_loaded": "{name} is loaded.",
    "model_unloaded": "{name} is no longer loaded.",
    "adapters_changed": "The adapters of {name} have changed.",
    "only_stored_models": "Only models in this browser's storage are listed: {reason}.",
    "storage_refuses_page": "This browser does not let the page keep files ({reason}): the model "
    "stays in memory, and it is downloaded again next time.",
    "storage_too_small": "{name} needs {needed_bytes:bytes} of this browser's storage, which has "
    "{free_bytes:bytes} left: the model stays in memory, and it is downloaded again next time.",
    "storage_refuses_model": "This browser's storage refused {name} ({reason}): the model stays in "
    "memory, and it is downloaded again next time.",
    "storage_refuses_file": "This browser's storage refused a file of {name} ({reason}): the model "
    "stays in memory, and what is not stored is downloaded again next time.",
    "device_lost": "{reason}. Opening it again and continuing where it stopped.",
    "device_recovered": "The device is back; nothing was lost.",
    "caches_in_less": "Memory is short: {name} keeps its context as {kv} instead of {usual}, which "
    "is less exact.",
    "draft_left_out": "{name} goes on without its draft {draft}: there is no room for both.",
    "moved_to_processor": "The graphics card was lost too often: your processor ({threads} "
    "{threads:thread|threads}) goes on from here.",
    "processor": "your processor ({threads} {threads:thread|threads})",
    # Errors
    "aborted": "cancelled",
    "no_model": "no model is loaded: load one first",
    "prompt_too_long": "the prompt has {prompt_tokens} tokens, and the model's context holds "
    "{context}, the answer included: shorten it, or let the oldest turns be dropped",
    "prompt_far_too_long": "the prompt has at least {prompt_tokens} tokens, and the model's "
    "context holds {context}, the answer included: shorten it, or let the oldest turns be dropped",
    "question_too_long": "the last question alone makes a prompt of {prompt_tokens} tokens, and "
    "the model's context holds {context}, the answer included: shorten it",
    "question_far_too_long": "the last question alone makes a prompt of at least {prompt_tokens} "
    "tokens, and the model's context holds {context}, the answer included: shorten it",
    "gpu_buffer_too_small": "{name} needs a GPU buffer of {needed:bytes}; this device allows "
    "{limit:bytes} ({limit_name}); use a browser or a graphics processor with more, or a smaller "
    "--max-seq-len",
    "memory_too_small": "{name} needs {needed:bytes} of memory; on the processor {left:bytes} of "
    "{limit:bytes} are left: choose a smaller model or quantisation, unload another one, or run it "
    "on a graphics card",
    "processor_lost": "the processor's threads ended too often",
    "smaller_models": "{fault}. Smaller models here: {models}",
    "smaller_model": "{name} ({gpu_bytes:bytes})",
    "encoder_cannot_write": "{name} is a text encoder: it makes vectors of texts, for search and "
    "comparison, and cannot write text; load another model to chat with",
    "encoder_cannot_rerank": "{name} cannot score texts for a query: load a reranker, a text "
    "encoder trained for that",
    "reranker_cannot_embed": "{name} is a reranker: it scores texts for a query and does not "
    "make vectors; load another text encoder for those",
    "model_cannot_see": "{name} cannot see images: load a model that can, or leave them out",
    "images_not_in_prompt": "the chat template leaves out images, or a message contains their "
    "placeholder",
    "model_not_loadable": "{name} cannot be loaded: {fault}",
    "no_such_model": "there is no model '{name}' here; there are: {names}",
    "no_models_here": "there is no model '{name}' here; there are: none",
    "no_stored_copy": "no copy of {name} is stored here",
    "copy_too_large": "a copy needs {needed:bytes} of this browser's storage, which has "
    "{free:bytes} left: delete stored models, or leave the file where it is",
    "download_too_large": "{name} needs {needed:bytes} of storage, which has {free:bytes} left: "
    "delete stored models, or choose a smaller file; one that you download yourself can be dropped "
    "on the page",
    "storage_refuses_download": "files cannot be stored here ({reason}): download {name} yourself "
    "and drop the file on the page",
    "hub_consent": "the Hugging Face Hub was not asked, since you have not allowed it: it would "
    "learn this machine's address and which model you want",
    "hub_switched_off": "this site does not let its page ask the Hub",
    "hub_token_refused": "the Hub does not accept the token for {what}: check that it is whole and "
    "has not expired, and that the name is right",
    "hub_not_public": "the Hub has no {what} that everybody may read: check the name; a gated or "
    "private one needs a token of yours",
    "hub_terms": "the Hub does not give {what} to everybody: accept its terms on its page there, "
    "and use a token of yours",
    "hub_terms_of_account": "the Hub does not give {what} to everybody: accept its terms on its "
    "page there, and use a token of that account",
    "hub_not_found": "the Hub has no {what}; check the name",
    "hub_no_such_revision": "the Hub has no such revision: {what}; check the name",
    "hub_no_such_file": "the Hub has no such file: {what}; check the name",
    "hub_busy": "the Hub was asked too often from here: wait some minutes, then try again",
    "hub_busy_for": "the Hub was asked too often from here: wait {seconds} "
    "{seconds:second|seconds}, then try again",
    "hub_answered": "the Hub answered {status} to a request for {what}: try again later",
    # Answers in JSON
    "json_room": "max_tokens is {room}, and the shortest answer that response_format allows takes "
    "{needed} tokens",
    "json_cannot_continue": "the answer cannot be continued: what is there does not begin a text "
    "that response_format allows",
    # JSON schemas
    "schema_refused": "response_format: {fault}",
    "schema_refused_at": "response_format: {place}: {fault}",
    "schema_keyword": "the keyword {keyword} is not supported",
    "schema_value": "{keyword} is {value}, not {wanted}",
    "schema_list": "{keyword} is not {wanted}",
    "schema_wants_schema": "a schema",
    "schema_wants_schemas": "a list of schemas",
    "schema_wants_named_schemas": "an object of schemas",
    "schema_wants_items": "a schema (for items by their place use prefixItems)",
    "schema_wants_names": "a list of names",
    "schema_wants_values": "a list of values",
    "schema_wants_count": "a whole number from 0 on",
    "schema_wants_limited_count": "a whole number from 0 to {most}",
    "schema_wants_number": "a number",
    "schema_wants_text": "a text",
    "schema_wants_types": "one of {types}, nor a list of them",
    "schema_format": "the format {format} is not supported (known are {known})",
    "schema_pattern": "the pattern {pattern} is not supported: {fault}",
    "schema_bounds": "these bounds of a number are not supported: {fault}",
    "schema_beside_fixed": "{keyword} beside an enum or const with lists or objects is not "
    "supported",
    "schema_texts_too_complex": "pattern, format and lengths together are too complex",
    "schema_reference_outside": "the $ref {reference} is not supported: only those that begin "
    "with #/",
    "schema_reference_nowhere": "the $ref {reference} leads nowhere",
    "schema_reference_no_schema": "the $ref {reference} does not lead to a schema",
    "schema_refers_to_itself": "the schema refers to itself, or too far, with nothing in between",
    "schema_ambiguous": "oneOf: a value could fit both schema {left} and schema {right}; make them "
    "differ in type, or in a required property with const or enum, or use anyOf",
    "schema_too_many_to_compare": "the schemas of oneOf are too many to compare; use anyOf",
    "schema_impossible": "no text of at most {size} bytes and {levels} levels fits the schema",
    "schema_too_deep": "the schema's recursion is too deep",
    "schema_nested_too_deeply": "the schema is nested too deeply",
    "schema_too_many_places": "the schema has more than {most} places",
    "schema_too_many_alternatives": "more than {most} alternatives",
    "schema_too_many_bytes": "enum values and names take more than {most} bytes",
    "schema_too_many_values": "the schema has more than {most} values",
    "schema_half_pair": "the schema holds half of a surrogate pair",
    "schema_unspellable": "this model's vocabulary cannot spell any text of the schema",
    # Sparse autoencoders
    "autoencoder_none": "no sparse autoencoder is open: open its file first",
    "autoencoder_files": "{files} was given as a sparse autoencoder: give one .safetensors or "
    ".npz file, with its cfg.json or config.json if it has one",
    "autoencoder_damaged": "{fault}: get the file again",
    "autoencoder_compressed": "{file}: {tensor} is compressed: save the file again with "
    "numpy.savez, which compresses nothing",
    "autoencoder_array": "{file}: {tensor} is not a plain array of floats in row order: save the "
    "file again with numpy.savez, its arrays as float32",
    "autoencoder_layout": "{file} is no sparse autoencoder of a known layout: it must have W_enc, "
    "b_enc, W_dec and b_dec (SAELens, Gemma Scope), or encoder.weight, encoder.bias, W_dec and "
    "b_dec (EleutherAI); it has {tensors}",
    "autoencoder_shape": "{file}: {tensor} is {found}, but must be {wanted}",
    "autoencoder_key": "{file}: this engine cannot compute a sparse autoencoder whose "
    "configuration says {key} = {value}",
    "autoencoder_needs_k": "{file} keeps the strongest features (TopK), and its cfg.json says how "
    "many: give both files together",
    "autoencoder_no_hook": "the files of {name} do not say which hook it reads: choose one",
    "autoencoder_hook": "{model} has no hook {hook} that an autoencoder could read: choose another",
    "autoencoder_width": "{name} reads activations of width {width}, but {hook} of {model} has "
    "{found}: choose another hook, or load the model that it was made for",
    "autoencoder_feature": "features are numbers from 0 to {last}",
    "autoencoder_overflow": "the numbers of {name} are too large to compute with: get the file "
    "again",
    "autoencoder_too_much": "{tokens} tokens are too many to look at at once: with so many "
    "features, at most {most}",
}


def message(code: str, **facts: Any) -> Message:
    """Return a message; a code that the table lacks, or other facts than it has, are a bug."""
    declared = facts_of(ENGLISH[code])
    if facts.keys() != declared:
        raise ValueError(f"{code} has the facts {sorted(declared)}, got {sorted(facts)}")
    return {"code": code, "facts": facts}


def worded(said: Message | Sequence[Message], separator: str = SEPARATOR) -> str:
    """Return a message in English, or several as a line."""
    if isinstance(said, dict):
        return ENGLISH_FORMATTER.vformat(ENGLISH[said["code"]], (), said["facts"])
    return separator.join(worded(each) for each in said)


@cache
def facts_of(template: str) -> frozenset[str]:
    """Return the names of the facts that a template holds."""
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name)


FORMATS: dict[str, Callable[[Any], str]] = {
    "bytes": lambda nbytes: in_words(int(nbytes)),
    "duration": duration,
    "millions": millions,
    "percent": percent,
}


class _EnglishFormatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, list):
            return (format_spec or ", ").join(self.format_field(each, "") for each in value)
        if isinstance(value, dict):
            return worded(value)  # type: ignore[arg-type]
        if "|" in format_spec:
            one, many = format_spec.split("|")
            return one if value == 1 else many
        if format_spec in FORMATS:
            return FORMATS[format_spec](value)
        return str(super().format_field(value, format_spec))


ENGLISH_FORMATTER = _EnglishFormatter()
