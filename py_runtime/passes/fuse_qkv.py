"""A pass that fuses q, k and v of one x, their rotary embedding, and the writes to the caches.

It makes inpage.qkv_rotary_cache, and inpage.attend_kv_cache or inpage.attend_window for the
attention itself. Heads may also go without rotary embedding. In layers that read the keys and
values of another layer only the queries are fused: inpage.q_rotary.
"""

from dataclasses import dataclass

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import VIEWS, CallAt, Chain
from py_runtime.passes.linear_calls import (
    LINEARS,
    LinearCall,
    can_join,
    linear_call,
    weight_args,
)
from py_runtime.program import OpCall, Program, op_names

OF_ONE = "inpage.rotary_of_one.default"
HALVES, NEIGHBOURS = "et_vk.apply_rotary_emb_hf.default", "et_vk.apply_rotary_emb.default"


@dataclass(frozen=True)
class Heads:
    """A linear viewed as heads, normalised head by head, over the whole row, or not at all."""

    linear: LinearCall
    norm: int | None  # its weight
    eps: int | None
    by_row: bool  # whether one norm goes over all heads of a row
    gone: list[CallAt]


def run(program: Program, target: KernelTarget) -> Program:
    """Replace linears, norms, rotary and attention that fills caches by the fused ops."""
    chain = Chain(program)
    for _, attend in chain.calls_of(*op_names.ATTEND):
        _fuse_queries(chain, chain.arg(attend, "q"))
    for attention in chain.calls_of(op_names.SDPA, op_names.WINDOWED):
        _fuse(chain, attention, target)
    return chain.program()


def _fuse_queries(chain: Chain, q: int) -> None:
    rotary = chain.maker_for_one(q, OF_ONE)
    heads = None if rotary is None else _heads(chain, chain.arg(rotary.call, "x"))
    if rotary is None or heads is None or not set(chain.dims(q)[:-3]) <= {1}:
        return
    none = chain.add(None)
    norm = [none if arg is None else arg for arg in (heads.norm, heads.eps)]
    tables = [chain.arg(rotary.call, name) for name in ("cos", "sin", "start_pos")]
    weights = weight_args(chain, [heads.linear])
    args = (heads.linear.x, none, none, *weights, *norm, *tables, chain.add(False), q)
    call = OpCall("inpage.q_rotary.default", args, rotary.call.source)
    chain.replace([*heads.gone, rotary], rotary.at, [call])


@dataclass(frozen=True)
class HeadsOfAttention:
    """The heads that attention over caches reads, and the calls that rotate and normalise them."""

    q: Heads
    k: Heads
    v: Heads
    rotary: CallAt | None  # of q and k together
    v_norm: CallAt | None  # over each head, without a weight

    @property
    def linears(self) -> list[LinearCall]:
        return [each.linear for each in (self.q, self.k, self.v)]

    @property
    def gone(self) -> list[CallAt]:
        own = [call for each in (self.q, self.k, self.v) for call in each.gone]
        return [*own, *(made for made in (self.rotary, self.v_norm) if made is not None)]


def _fuse(chain: Chain, attention: CallAt, target: KernelTarget) -> None:
    at, sdpa = attention
    found = _heads_of_attention(chain, sdpa)
    if found is None or not can_join(chain, found.linears, target):
        return
    q, k_cache, v_cache, start_pos, scale, out = (
        chain.arg(sdpa, name) for name in ("q", "k_cache", "v_cache", "start_pos", "scale", "out")
    )
    none = chain.add(None)
    window = chain.arg(sdpa, "window") if sdpa.name == op_names.WINDOWED else none
    norms = [
        none if arg is None else arg for each in (found.q, found.k) for arg in (each.norm, each.eps)
    ]
    args = [
        found.q.linear.x,
        none,
        none,
        *weight_args(chain, found.linears),
        *norms,
        *_tables(chain, found.rotary, start_pos),
        k_cache,
        v_cache,
        start_pos,
        window,
        none if found.v_norm is None else chain.arg(found.v_norm.call, "eps"),
        q,
    ]
    source = sdpa.source if found.rotary is None else found.rotary.call.source
    fill = OpCall(op_names.QKV_ROTARY_CACHE, tuple(args), source)
    name, attend_args = op_names.ATTEND_KV_CACHE, [q, k_cache, v_cache, start_pos, scale]
    if sdpa.name == op_names.WINDOWED:
        name = op_names.ATTEND_WINDOW
        attend_args += [window, chain.arg(sdpa, "softcap"), chain.arg(sdpa, "sinks")]
    attend = OpCall(name, (*attend_args, out), sdpa.source)
    chain.replace([*found.gone, attention], at, [fill, attend])


def _heads_of_attention(chain: Chain, sdpa: OpCall) -> HeadsOfAttention | None:
    """Return the heads if everything on the way to attention can be done in one op."""
    q, k, v, k_cache, v_cache = (
        chain.arg(sdpa, name) for name in ("q", "k", "v", "k_cache", "v_cache")
    )
    if not _is_plain(chain, sdpa) or k_cache == v_cache:
        return None
    if not all(chain.is_state(cache) for cache in (k_cache, v_cache)):
        return None  # an input's dims may change from call to call
    rotary = chain.maker_for_one(q, HALVES, NEIGHBOURS)
    if rotary != chain.maker_for_one(k, HALVES, NEIGHBOURS) or q == k:
        return None
    if rotary is not None:
        q, k = (chain.arg(rotary.call, name) for name in ("xq", "xk"))
    v_norm = chain.maker_for_one(v, op_names.RMS_NORM)
    if v_norm is not None:
        if not chain.is_null(chain.arg(v_norm.call, "weight")):
            return None
        v = chain.arg(v_norm.call, "x")
    heads = [found for each in (q, k, v) if (found := _heads(chain, each)) is not None]
    if len(heads) < 3 or heads[2].norm is not None:
        return None
    q_heads, k_heads, v_heads = heads
    if (q_heads.norm is None, q_heads.by_row) != (k_heads.norm is None, k_heads.by_row):
        return None
    if v_norm is not None and q_heads.by_row:
        return None
    return HeadsOfAttention(q_heads, k_heads, v_heads, rotary, v_norm)


def _tables(chain: Chain, rotary: CallAt | None, start_pos: int) -> list[int]:
    """Return the arguments cos, sin, table_start and neighbours."""
    if rotary is None:
        none = chain.add(None)
        return [none, none, start_pos, chain.add(False)]
    neighbours = rotary.call.name == NEIGHBOURS
    names = ("freqs_cos", "freqs_sin") if neighbours else ("cos", "sin")
    table_start = chain.add(0) if neighbours else chain.arg(rotary.call, "start_pos")
    return [*(chain.arg(rotary.call, name) for name in names), table_start, chain.add(neighbours)]


def _is_plain(chain: Chain, sdpa: OpCall) -> bool:
    """Return whether the attention has one batch and only what the fused op takes."""
    if not set(chain.dims(chain.arg(sdpa, "q"))[:-3]) <= {1}:
        return False
    if sdpa.name == op_names.WINDOWED:
        return True
    causal = chain.arg(sdpa, "is_causal")
    return (
        chain.is_null(chain.arg(sdpa, "attn_mask"))
        and chain.number(chain.arg(sdpa, "dropout_p")) == 0
        and (chain.is_null(causal) or chain.number(causal) == 1)
    )


def _heads(chain: Chain, value_id: int) -> Heads | None:
    """Match value ← (norm over each head) ← view ← (norm of a row) ← linear.

    There is at most one norm, and nothing else reads the values on the way.
    """
    gone: list[CallAt] = []
    norm = eps = None
    normed = chain.maker_for_one(value_id, op_names.RMS_NORM)
    if normed is not None and not chain.is_null(chain.arg(normed.call, "weight")):
        gone.append(normed)
        value_id, norm, eps = (chain.arg(normed.call, name) for name in ("x", "weight", "eps"))
    view = chain.maker_for_one(value_id, *VIEWS)
    if view is None:
        return None
    summed = chain.arg(view.call, "x")
    row_normed = chain.maker_for_one(summed, op_names.RMS_NORM) if norm is None else None
    if row_normed is not None and chain.is_null(chain.arg(row_normed.call, "weight")):
        return None
    if row_normed is not None:
        gone.append(row_normed)
        summed, norm, eps = (chain.arg(row_normed.call, name) for name in ("x", "weight", "eps"))
    linear = linear_call(chain, chain.maker_for_one(summed, *LINEARS))
    if linear is None:
        return None
    dims = chain.dims(value_id)
    if len(dims) < 3:
        return None
    *lead, heads, width = dims
    if chain.dims(linear.out) != (*lead, heads * width):
        return None
    return Heads(linear, norm, eps, row_normed is not None, [*gone, view, linear.made])
