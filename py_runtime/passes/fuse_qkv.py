"""A pass that fuses q, k and v of one x, their rotary embedding, and the writes to the caches.

It makes inpage.qkv_rotary_cache, and inpage.attend_kv_cache or inpage.attend_window for the
attention itself. Heads may also go without rotary embedding. In layers that read the keys and
values of another layer only the queries are fused: inpage.q_rotary.
"""

from dataclasses import dataclass

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import VIEWS, CallAt, Chain, sources_of
from py_runtime.passes.linear_calls import (
    LINEARS,
    LinearCall,
    can_join,
    linear_call,
    weight_args,
)
from py_runtime.program import OpCall, Program, op_names

OF_ONE = "inpage.rotary_of_one.default"
# What stands for attention once others fill its caches, and its arguments besides a scale.
ATTENDING = dict(zip(op_names.FILLING, op_names.ATTEND, strict=True))
WINDOW = ("window", "softcap", "sinks")
SEEN_BY = {
    op_names.SDPA: (),
    op_names.WINDOWED: WINDOW,
    op_names.OF_IMAGES: (*WINDOW, "together"),
}
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
    for attention in chain.calls_of(*op_names.FILLING):
        _fuse(chain, attention, target)
    return chain.program()


def _fuse_queries(chain: Chain, q: int) -> None:
    rotary = chain.maker_for_one(q, OF_ONE)
    heads = None if rotary is None else _heads(chain, chain.arg(rotary.call, "x"))
    if rotary is None or heads is None or not set(chain.dims(q)[:-3]) <= {1}:
        return
    gone = [*heads.gone, rotary]
    call = chain.call(
        "inpage.q_rotary.default",
        sources_of(gone),
        x=heads.linear.x,
        **weight_args(chain, [heads.linear]),
        q_norm=heads.norm,
        q_eps=heads.eps,
        cos=chain.arg(rotary.call, "cos"),
        sin=chain.arg(rotary.call, "sin"),
        table_start=chain.arg(rotary.call, "start_pos"),
        neighbours=chain.add(False),
        out=q,
    )
    chain.replace(gone, rotary.at, [call])


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
    is_windowed = sdpa.name != op_names.SDPA
    q, start_pos = chain.arg(sdpa, "q"), chain.arg(sdpa, "start_pos")
    caches = {name: chain.arg(sdpa, name) for name in ("k_cache", "v_cache")}
    fill = chain.call(
        op_names.QKV_ROTARY_CACHE,
        sources_of([*found.gone, attention]),
        x=found.q.linear.x,
        **weight_args(chain, found.linears),
        q_norm=found.q.norm,
        q_eps=found.q.eps,
        k_norm=found.k.norm,
        k_eps=found.k.eps,
        **_tables(chain, found.rotary, start_pos),
        **caches,
        start_pos=start_pos,
        window=chain.arg(sdpa, "window") if is_windowed else None,
        v_eps=None if found.v_norm is None else chain.arg(found.v_norm.call, "eps"),
        out=q,
    )
    seen = SEEN_BY[sdpa.name]
    attend = chain.call(
        ATTENDING[sdpa.name],
        sdpa.source,
        q=q,
        **caches,
        start_pos=start_pos,
        **{name: chain.arg(sdpa, name) for name in ("scale", *seen, "out")},
    )
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


def _tables(chain: Chain, rotary: CallAt | None, start_pos: int) -> dict[str, int]:
    """Return the arguments about rotary tables."""
    if rotary is None:
        return {"table_start": start_pos, "neighbours": chain.add(False)}
    given = chain.given(rotary.call)
    if rotary.call.name == NEIGHBOURS:
        tables = {"cos": given["freqs_cos"], "sin": given["freqs_sin"]}
        return {**tables, "table_start": chain.add(0), "neighbours": chain.add(True)}
    tables = {name: given[name] for name in ("cos", "sin")}
    return {**tables, "table_start": given["start_pos"], "neighbours": chain.add(False)}


def _is_plain(chain: Chain, sdpa: OpCall) -> bool:
    """Return whether the attention has one batch and only what the fused op takes."""
    if not set(chain.dims(chain.arg(sdpa, "q"))[:-3]) <= {1}:
        return False
    if sdpa.name != op_names.SDPA:
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
