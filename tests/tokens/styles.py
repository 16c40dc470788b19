"""Small tokenizers in the styles of the models people use, trained on the spot by `tokenizers`."""

import copy
import json
from functools import cache
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors as post
from tokenizers.trainers import BpeTrainer, WordPieceTrainer

from tests.tokens.corpus import SENTENCES, lines

Json = dict[str, Any]

VOCABULARY_SIZE = 2500
LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_SPLIT = LLAMA3_SPLIT.replace("{1,3}", "")
GPT4O_SPLIT = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_SPLITS = (
    r"\p{N}{1,3}",
    r"[一-龥ࠀ-一가-퟿]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r"\s+$",
)


def byte_level(*, use_regex: bool = False, add_prefix_space: bool = False) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def split(pattern: str) -> Any:
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def bos_template(token: str, token_id: int) -> Any:
    return post.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token} $B:1", special_tokens=[(token, token_id)]
    )


def trained_byte_level(
    pre_tokenizer: Any, special: list[str], normalizer: Any = None, **options: Any
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 2 + lines()[:1500], trainer)
    return tokenizer


def as_json(tokenizer: Tokenizer) -> Json:
    return json.loads(tokenizer.to_str())


def gpt2() -> Json:
    return as_json(trained_byte_level(byte_level(use_regex=True), ["<|endoftext|>"]))


def gpt2_with_prefix_space() -> Json:
    """Make a tokenizer like RoBERTa's; one of its bytes is missing and dropped from texts."""
    pre_tokenizer = byte_level(use_regex=True, add_prefix_space=True)
    made = as_json(trained_byte_level(pre_tokenizer, ["<s>"]))
    made["model"]["merges"] = [pair for pair in made["model"]["merges"] if "Ł" not in "".join(pair)]
    del made["model"]["vocab"]["Ł"]
    return made


def llama3() -> Json:
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>"]
    special += (f"<|reserved_special_token_{index}|>" for index in range(40))
    sequence = pre_tokenizers.Sequence([split(LLAMA3_SPLIT), byte_level()])
    tokenizer = trained_byte_level(sequence, special)
    tokenizer.post_processor = post.Sequence(
        [post.ByteLevel(trim_offsets=False), bos_template("<|begin_of_text|>", 0)]
    )
    made = as_json(tokenizer)
    made["model"]["ignore_merges"] = True
    # Words that no merge leads to any more: only ignore_merges finds them.
    del made["model"]["merges"][5::7]
    return made


def qwen2() -> Json:
    sequence = pre_tokenizers.Sequence([split(QWEN2_SPLIT), byte_level()])
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = trained_byte_level(sequence, special, normalizer=normalizers.NFC())
    plain = ("<tool_call>", "</tool_call>", "<think>")
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in plain])
    tokenizer.post_processor = post.ByteLevel(trim_offsets=False)
    return as_json(tokenizer)


def gpt4o() -> Json:
    sequence = pre_tokenizers.Sequence([split(GPT4O_SPLIT), byte_level()])
    return as_json(trained_byte_level(sequence, ["<|endoftext|>"], normalizer=normalizers.NFKC()))


def deepseek() -> Json:
    steps = [*map(split, DEEPSEEK_SPLITS), pre_tokenizers.Digits(individual_digits=False)]
    sequence = pre_tokenizers.Sequence([*steps, byte_level()])
    return as_json(trained_byte_level(sequence, ["<|endoftext|>"]))


def odd_added_tokens() -> Json:
    """Every flag of added tokens, over normalizers that change the text."""
    normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase(), normalizers.Strip(left=True, right=False)]
    )
    tokenizer = trained_byte_level(byte_level(use_regex=True), ["<unk>"], normalizer=normalizer)
    tokenizer.add_tokens(
        [
            AddedToken("[word]", single_word=True, normalized=False),
            AddedToken("[left]", lstrip=True, normalized=False),
            AddedToken("[right]", rstrip=True, normalized=False),
            AddedToken("[Norm]", normalized=True),
            AddedToken("word", single_word=True, normalized=True),
            AddedToken("<|im_start|>", lstrip=True, rstrip=True, special=True, normalized=True),
            AddedToken("<|im_start", normalized=False),
            AddedToken("[wor", normalized=False),
            AddedToken("im_end|>", normalized=False),
        ]
    )
    return as_json(tokenizer)


def sentence_piece(**parts: Any) -> Json:
    """Characters merged within words; bytes for characters that are not in the vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = BpeTrainer(vocab_size=VOCABULARY_SIZE, limit_alphabet=400, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    for name, part in ({"pre_tokenizer": None} | parts).items():
        setattr(tokenizer, name, part)
    made = as_json(tokenizer)
    merges = made["model"]["merges"]
    learnt = sorted(made["model"]["vocab"], key=made["model"]["vocab"].__getitem__)
    in_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    spaces = ["▁" * 2, "▁" * 4]
    tokens = ["<unk>", "<s>", "</s>", *in_bytes, *spaces, *learnt]
    made["model"] |= {
        "vocab": {token: token_id for token_id, token in enumerate(dict.fromkeys(tokens))},
        "merges": [["▁", "▁"], ["▁▁", "▁▁"], *merges],
        "byte_fallback": True,
        "fuse_unk": True,
        "unk_token": "<unk>",
    }
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    made["added_tokens"] = [
        {"id": token_id, "content": token, **flags, "special": True}
        for token_id, token in enumerate(tokens[:3])
    ]
    return made


def llama2() -> Json:
    made = sentence_piece(
        normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        decoder=decoders.Sequence(
            [
                decoders.Replace("▁", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        ),
        post_processor=bos_template("<s>", 1),
    )
    made["model"]["merges"] = [" ".join(pair) for pair in made["model"]["merges"]]  # as of old
    return made


def mistral() -> Json:
    return sentence_piece(
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
        decoder=decoders.Sequence(
            [
                decoders.Replace("▁", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        ),
        post_processor=bos_template("<s>", 1),
    )


def metaspace_without_bytes() -> Json:
    """Drop some byte tokens, so that their characters are unknown."""
    made = sentence_piece(pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())
    for byte in (0xE4, 0xE5, 0xF0):
        del made["model"]["vocab"][f"<0x{byte:02X}>"]
    return made


def unfused_unknown() -> Json:
    made = copy.deepcopy(cached("metaspace_without_bytes"))
    made["model"] |= {"byte_fallback": False, "fuse_unk": False}
    return made | {"decoder": None}


def words_with_affixes() -> Json:
    """Train a tokenizer with the prefix inside words and the suffix of the first BPE models."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        limit_alphabet=500,
        special_tokens=["<unk>"],
        continuing_subword_prefix="##",
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    return as_json(tokenizer)


def bert() -> Json:
    """Words in pieces, in small letters without accents."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = WordPieceTrainer(
        vocab_size=VOCABULARY_SIZE, limit_alphabet=600, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES * 2 + lines()[:1500], trainer)
    tokenizer.post_processor = post.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.decoder = decoders.WordPiece()
    return as_json(tokenizer)


def bert_as_written() -> Json:
    """Take texts as they are; words of more than a few characters are unknown."""
    made = copy.deepcopy(cached("bert"))
    made["normalizer"] |= {"clean_text": False, "lowercase": False, "strip_accents": True}
    made["normalizer"]["handle_chinese_chars"] = False
    made["decoder"]["cleanup"] = False
    made["model"]["max_input_chars_per_word"] = 6
    return made


MODELS = (gpt2, llama3, qwen2, llama2, mistral, bert)
ODDITIES = (
    gpt2_with_prefix_space,
    gpt4o,
    deepseek,
    odd_added_tokens,
    metaspace_without_bytes,
    unfused_unknown,
    words_with_affixes,
    bert_as_written,
)
STYLES = {maker.__name__: maker for maker in (*MODELS, *ODDITIES)}


@cache
def cached(name: str) -> Json:
    return STYLES[name]()
