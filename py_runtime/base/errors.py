"""The errors the runtime raises on purpose: a `code` for programs, a text for people."""

from dataclasses import dataclass

from py_runtime.base.messages import Message, message, worded


class InpageError(Exception):
    """The base class; any other exception is a bug in the runtime, not a fault of the input."""

    code = "inpage_error"

    def __init__(self, said: str | Message = "") -> None:
        """Take a text, or a message that pages can word in their user's language."""
        self.said = None if isinstance(said, str) else said
        super().__init__(said if isinstance(said, str) else worded(said))

    @property
    def wording(self) -> str | Message:
        """The reason that another message quotes: this error's message, or else its text."""
        return self.said or str(self)

    def facts(self) -> dict[str, object]:
        """Return what a program may want to know besides the text."""
        return {}


class GpuError(InpageError):
    """An error of the GPU, or of the browser's WebGPU."""

    code = "gpu_error"


class GpuUnavailableError(GpuError):
    """There is no WebGPU, no adapter, or the device request was refused."""

    code = "gpu_unavailable"


class GpuValidationError(GpuError):
    """A call broke a rule of the WebGPU specification."""

    code = "gpu_validation"


class GpuOutOfMemoryError(GpuError):
    """An allocation did not fit."""

    code = "gpu_out_of_memory"


class GpuDeviceLostError(GpuError):
    """The device is gone: every object made from it is dead."""

    code = "gpu_device_lost"


@dataclass(frozen=True)
class ShaderMessage:
    """A compiler's message and its place in the WGSL."""

    line: int  # 1-based line of the WGSL text; 0 when the compiler gave none
    column: int
    text: str


class ShaderError(GpuError):
    """A WGSL source did not compile."""

    code = "shader_error"

    def __init__(self, shader: str, source: str, messages: list[ShaderMessage]) -> None:
        self.shader = shader
        self.messages = messages
        source_lines = source.splitlines()
        rows = [f"shader '{shader}' does not compile:"]
        for each in messages:
            rows.append(f"  line {each.line}, column {each.column}: {each.text}")
            if 1 <= each.line <= len(source_lines):
                rows.append(f"    {source_lines[each.line - 1].strip()}")
        super().__init__("\n".join(rows))


class NetworkError(InpageError):
    """A file did not arrive, or not whole."""

    code = "network_error"
    is_final = False  # whether another try would change nothing


class NotFoundError(NetworkError):
    """There is nothing at that address."""

    is_final = True


class RefusedError(NetworkError):
    """A host does not give this to everybody, or leads where nobody should follow."""

    is_final = True


class GraphError(InpageError):
    """A graph cannot be loaded: the text names the value, the op and the fault."""

    code = "graph_error"


class InputError(InpageError):
    """A call's inputs do not fit the graph; the graph is as it was before the call."""

    code = "input_error"


class RequestError(InpageError):
    """A request asks for something that cannot be: `param` names the field."""

    code = "invalid_request"

    def __init__(self, said: str | Message, param: str | None = None) -> None:
        super().__init__(said)
        self.param = param

    def facts(self) -> dict[str, object]:
        return {"param": self.param}


def most_counted(context: int) -> int:
    """Return how many tokens of a prompt are counted before it is too long beyond doubt."""
    return max(2 * context, 1 << 16)


class ContextLengthError(InpageError):
    """A prompt that does not fit the model's context."""

    code = "context_length_exceeded"

    def __init__(self, prompt_tokens: int, context: int, is_one_turn: bool = False) -> None:
        # A prompt that is far too long is not counted to its end.
        is_counted = prompt_tokens <= most_counted(context)
        what = "question" if is_one_turn else "prompt"
        code = f"{what}_too_long" if is_counted else f"{what}_far_too_long"
        super().__init__(message(code, prompt_tokens=prompt_tokens, context=context))
        self.prompt_tokens = prompt_tokens
        self.context = context

    def facts(self) -> dict[str, object]:
        return {"prompt_tokens": self.prompt_tokens, "context": self.context}


class NoModelError(InpageError):
    """A call that needs a model while none is loaded."""

    code = "no_model"

    def __init__(self) -> None:
        super().__init__(message("no_model"))


class AbortedError(InpageError):
    """A call that the caller cancelled."""

    code = "aborted"

    def __init__(self) -> None:
        super().__init__(message("aborted"))


class StorageError(InpageError):
    """The browser's storage refused something."""

    code = "storage_error"


class QuotaError(StorageError):
    """The browser's storage is full."""


class StorageBusyError(StorageError):
    """Another tab has the file open, or is moving it."""
