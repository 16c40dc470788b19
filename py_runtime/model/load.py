"""Loading a model of whatever kind: one that writes texts, or one that encodes them."""

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.progress import LoadProgress, Meter
from py_runtime.gpu import Device
from py_runtime.model.cache_type import check_cache_type
from py_runtime.model.encoder import Encoder, cannot_write
from py_runtime.model.encoder_folder import EncoderFolder
from py_runtime.model.model import Model
from py_runtime.model.stores import Store, open_folder
from py_runtime.model.with_draft import load_with_draft

AnyModel = Model | Encoder


async def load_model(
    device: Device,
    where: str | Store,
    progress: LoadProgress | None = None,
    cancel: CancelToken | None = None,
    compile_later: bool = False,
    kernels: str | None = None,
    kv: str | None = None,
    draft: str | Store | None = None,
) -> AnyModel:
    """Load a model as Model.load does, or an encoder; `draft` is a smaller model to propose tokens.

    The draft is the model's from then on: it is rebuilt and unloaded with it.
    """
    check_cache_type(kv)

    async def load() -> AnyModel:
        meter = Meter(progress)
        store, folder = await open_folder(device, where, meter)
        if draft is not None:
            return await load_with_draft(
                device, store, folder, draft, progress, compile_later, kernels, kv
            )
        if isinstance(folder, EncoderFolder):
            return await Encoder.load(device, store, folder, meter, compile_later, kernels)
        return await Model.load_opened(device, store, folder, meter, compile_later, kernels, kv)

    return await until_cancelled(load(), cancel)


def writer(model: AnyModel) -> Model:
    """Return a model that writes texts; RequestError says what an encoder is for."""
    if isinstance(model, Encoder):
        raise cannot_write(model.manifest.name)
    return model
