"""GGUF files: metadata gives config, tokenizer and template; known types are taken bit for bit."""

import mmap
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from gguf import GGMLQuantizationType, dequantize

from export import architectures
from export.errors import ExportError
from export.quantisers import Parts
from export.sources import Quantisation, Source
from py_runtime.decoder.family import Family
from py_runtime.decoder.rotary import Floats
from py_runtime.decoder.tensors import WeightKind, weight_parts
from py_runtime.gguf.config import check_tensors, read_config, read_family
from py_runtime.gguf.fused_tensors import split_fused
from py_runtime.gguf.model import factors_name
from py_runtime.gguf.names import gguf_names, is_rotated
from py_runtime.gguf.part_names import parts_of
from py_runtime.gguf.reader import GgufFile, StoredTensor, open_gguf
from py_runtime.gguf.stored_weights import in_halves, kind_of, parts_of_blocks
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.program.weight_kinds import FLOAT
from py_runtime.weights.byte_source import ByteSource, FileSource

T = TypeVar("T")
GATED = re.compile(r"\.[qg]_proj\.")


class GgufSource(Source):
    """A GGUF file, or all parts of one: tensors are read when they are asked for."""

    _file: GgufFile
    _family: Family
    _names: dict[str, str]
    _maps: dict[ByteSource, np.memmap]

    @classmethod
    def open(cls, path: Path, quantisation: Quantisation) -> "GgufSource":
        sources = []
        for name in parts_of(path.name):
            part = path.with_name(name)
            if not part.is_file():
                raise ExportError(f"there is no file {part}")
            sources.append(FileSource(part))
        file = _at_once(open_gguf(sources))
        metadata = file.metadata
        named = {
            key: metadata.text(f"general.{key}")
            for key in ("name", "license")
            if f"general.{key}" in metadata
        }
        source = cls(
            named.get("name") or path.stem,
            named.get("license") or "unknown",
            read_config(file),
            read_tokenizer(metadata),
            quantisation,
        )
        config = source.decoder_config(None)
        source._family = read_family(file)
        source._names = gguf_names(config)
        source._file = split_fused(file, source._family.gguf, config)
        source._maps = {found: np.memmap(found.path, np.uint8, "r") for found in sources}
        check_tensors(source._file, config)
        return source

    def kind(self, weight: str) -> WeightKind:
        info = self._tensor(weight).info
        known = kind_of(info.kind, info.dims[1])
        if known is not None:
            return known
        type_name = info.kind.name
        text = (
            f"{type_name} tensors are dequantised and quantised again as {self.quantisation.name}"
        )
        if text not in self.warnings:
            self.warnings.append(text)
        return self.quantisation.kind_of(weight)

    def shape(self, name: str) -> tuple[int, ...] | None:
        return self._tensor(name).info.dims

    def dense(self, name: str) -> np.ndarray:
        tensor = self._tensor(name)
        kind = GGMLQuantizationType(tensor.info.kind.number)
        try:
            values = dequantize(self._rows(name, tensor), kind).astype(np.float32)
        except NotImplementedError:  # so the package gguf refuses a type
            raise ExportError(
                f"'{tensor.info.name}' is {kind.name}, which cannot be dequantised"
            ) from None
        self._forget_pages()
        return values.reshape(tensor.info.dims)

    def parts(self, weight: str) -> Parts:
        tensor = self._tensor(weight)
        rows, columns = tensor.info.dims
        kind = kind_of(tensor.info.kind, columns)
        if kind is None or kind.name == FLOAT:
            return super().parts(weight)
        declared = weight_parts(kind, rows, columns)
        data = parts_of_blocks(tensor.info.kind, kind, self._rows(weight, tensor).reshape(-1))
        self._forget_pages()
        return {
            part: data[part].view(dtype.host).reshape(dims)
            for part, (dims, dtype) in declared.items()
        }

    def rotary_tables(self, context: int) -> dict[str, Floats]:
        """Return the rotary tables; some files have a tensor of factors for the frequencies."""
        found = self._file.tensors.get(factors_name(self.values, context))
        factors = None if found is None else self._bytes(found).view(np.float32)
        return architectures.rotary_tables(self.values, context, factors)

    def _tensor(self, name: str) -> StoredTensor:
        return self._file.tensors[self._names[name]]  # check_tensors has seen it

    def _rows(self, name: str, tensor: StoredTensor) -> np.ndarray:
        """u8 [rows, bytes of a row], those of q and k as torch has them."""
        rows = self._bytes(tensor).reshape(tensor.info.dims[0] if tensor.info.dims[1:] else 1, -1)
        if self._family.gated_attention and GATED.search(name):  # a head's query, then its gate
            head_dim = self.decoder_config(None).attention.head_dim
            runs = rows.reshape(-1, 2, head_dim, rows.shape[1] // 2)
            which = int(".g_proj." in name)
            return np.ascontiguousarray(runs[:, which]).reshape(len(rows), -1)
        if not self._family.gguf.pairs_side_by_side or not is_rotated(name):
            return rows
        if rows.shape[0] == 1:  # a bias: a row a value
            rows = rows.reshape(tensor.info.dims[0], -1)
        return in_halves(rows, self.decoder_config(None).attention.head_dim)

    def _bytes(self, tensor: StoredTensor) -> np.ndarray:
        info = tensor.info
        return self._maps[tensor.source][info.offset : info.offset + info.nbytes]

    def _forget_pages(self) -> None:
        """Release the pages read from the mapped files, which need not stay beside the results."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self._maps.values():
                mapped._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits, as reading files on a disk never does.

    An event loop may be running already.
    """
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError("a file on a disk is read at once")
