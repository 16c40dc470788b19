"""A model with a draft: a smaller one of the same vocabulary that proposes its tokens.

What speaks against the pair is said before the weights of either are read.
"""

from dataclasses import replace

from py_runtime.base.errors import (
    AbortedError,
    GpuDeviceLostError,
    GpuOutOfMemoryError,
    InpageError,
    RequestError,
)
from py_runtime.base.progress import UPLOAD, LoadProgress, Meter
from py_runtime.base.sizes import in_words
from py_runtime.folder.layout import ModelFolder
from py_runtime.generation.verifier import with_all_logits
from py_runtime.gpu import Device
from py_runtime.model.encoder_folder import EncoderFolder
from py_runtime.model.model import Model, tokenizer_of
from py_runtime.model.requirements import bytes_on_cpu
from py_runtime.model.seeing_folder import SeeingFolder
from py_runtime.model.stores import Store, open_folder
from py_runtime.tokens import Tokenizer

ALIKE = 0.95  # of the larger vocabulary: some are padded, or have spare tokens with other names


async def load_with_draft(
    device: Device,
    store: Store,
    folder: ModelFolder | EncoderFolder,
    draft: str | Store,
    progress: LoadProgress | None,
    compile_later: bool,
    kernels: str | None,
    kv: str | None,
) -> Model:
    """Load a model that a store has opened, and its draft; neither stays if one cannot be."""
    target = replace(_verifying(folder), head=None)  # the draft proposes in its place
    draft_store, proposing = await _opened(device, draft, Meter(progress))
    own, other = target.manifest, proposing.manifest
    tokenizer = await tokenizer_of(store, target)
    drafts_tokenizer = await _draft_tokenizer(draft_store, proposing, tokenizer, own.name)
    _check_memory(device, target, proposing)
    all_bytes = own.size + other.size
    first = Meter(_part_of(progress, 0, all_bytes))
    drafting = await Model.load_opened(
        device, draft_store, proposing, first, compile_later, kernels, None, drafts_tokenizer
    )
    try:
        second = Meter(_part_of(progress, other.size, all_bytes))
        model = await Model.load_opened(
            device, store, target, second, compile_later, kernels, kv, tokenizer
        )
    except BaseException:
        drafting.unload()
        raise
    model.draft = drafting
    return model


def _verifying(folder: ModelFolder | EncoderFolder) -> ModelFolder:
    """Return the folder of a model that can verify proposals; RequestError says why it cannot."""
    if isinstance(folder, EncoderFolder):
        why = "it makes vectors of texts and writes none"
    elif isinstance(folder, SeeingFolder):
        why = "it sees images"
    elif with_all_logits(folder.program) is None:
        why = "its program does not give the logits of several tokens"
    else:
        return folder
    raise RequestError(f"{folder.manifest.name} takes no draft: {why}", "draft")


async def _opened(device: Device, draft: str | Store, meter: Meter) -> tuple[Store, ModelFolder]:
    """Open a draft; its faults say that they are the draft's."""
    try:
        store, folder = await open_folder(device, draft, meter)
    except (AbortedError, GpuDeviceLostError):
        raise
    except InpageError as error:
        raise RequestError(f"the draft cannot be loaded: {error}", "draft") from None
    name = folder.manifest.name
    if isinstance(folder, EncoderFolder):
        raise RequestError(f"{name} cannot be a draft: it writes no texts", "draft")
    if isinstance(folder, SeeingFolder):
        raise RequestError(f"{name} cannot be a draft: it sees images", "draft")
    if store.token_rows(folder) is not None:
        fault = "it reads rows of tokens from outside the device"
        raise RequestError(f"{name} cannot be a draft: {fault}", "draft")
    return store, folder


async def _draft_tokenizer(
    store: Store, folder: ModelFolder, tokenizer: Tokenizer, name: str
) -> Tokenizer:
    """Return the draft's tokenizer: the model's own where both have the same tokens.

    RequestError: they are others than those of the model with this name.
    """
    own = await tokenizer_of(store, folder)
    share = tokenizer.share_in_common(own)
    if share < ALIKE:
        fault = f"only {share:.0%} of their tokens are the same"
        raise RequestError(
            f"{folder.manifest.name} cannot be a draft for {name}: {fault}; choose a smaller model "
            "of the same family",
            "draft",
        )
    return tokenizer if share == 1 else own


def _check_memory(device: Device, model: ModelFolder, draft: ModelFolder) -> None:
    """Raise if a CPU has no room for both; a GPU says so itself."""
    left = device.bytes_left
    if left is None:
        return
    both = (model.manifest, draft.manifest)
    needed = sum(bytes_on_cpu(each.least_gpu_bytes, each.size) for each in both)
    if needed > left:
        raise GpuOutOfMemoryError(
            f"{both[0].name} and its draft {both[1].name} need {in_words(needed)} of memory "
            f"together, and {in_words(left)} are left: choose a smaller draft, or leave it out"
        )


def _part_of(progress: LoadProgress | None, before: int, whole: int) -> LoadProgress | None:
    """Return what tells the upload of one of two models as a part of both."""
    if progress is None:
        return None

    def tell(phase: str, done: int, total: int) -> None:
        if phase != UPLOAD:
            progress(phase, done, total)
            return
        after = 0 if before else max(whole - total, 0)
        progress(phase, before + done, before + total + after)

    return tell
