"""inpage.qkv_rotary_cache: all that lies between a decoder layer's input and its attention.

x is normalised; q, k and v are computed from it; heads of q and k are normalised where the graph
says so and turned by their position's angle; heads of v may be normalised, too, without a weight;
k and v go into the caches. For one token that is one kernel, or two where heads are normalised or
a kernel can bind few buffers; two kinds of weights are two kernels where it cannot bind those of
both, and a third kind is one more.

inpage.q_rotary is the same for layers that see the keys and values of another. `of_sum`: x is
computed, too.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.live.launch import Bindable, Launch
from py_runtime.live.values import LiveInt
from py_runtime.ops.kernels.attention_options import take_window
from py_runtime.ops.kernels.epilogues import (
    Epilogue,
    bias_fields,
    each_token,
    make_bias_epilogue,
    make_residual_epilogue,
)
from py_runtime.ops.kernels.fused_arguments import (
    NORM,
    SUM,
    WEIGHTS,
    take_biases,
    take_input_output,
    take_matrices,
    take_norm,
)
from py_runtime.ops.kernels.gemv import count_gemv_buffers
from py_runtime.ops.kernels.kv_caches import CacheUpdate, take_caches, takes_values_alone
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import Matrices, part_rows, rows_of
from py_runtime.ops.kernels.position_checks import check_cache, check_rows
from py_runtime.ops.registry import Op, register

# Storage buffers of the kernel that does everything.
BUFFERS_AT_ONCE = count_gemv_buffers({"token": "plain", "epilogue": "qkv", "store": F32.name})

HEADS_AND_CACHES = (
    "q_norm? q_eps? k_norm? k_eps? cos? sin? table_start neighbours "
    "k_cache v_cache start_pos window? v_eps? out"
)
HEADS = "q_norm? q_eps? cos? sin? table_start neighbours out"


@register(
    "inpage.qkv_rotary_cache.default",
    args=f"x {NORM} {WEIGHTS} {HEADS_AND_CACHES}",
    mutates="k_cache v_cache",
)
@register(
    "inpage.qkv_rotary_cache.of_sum",
    args=f"{SUM} {NORM} {WEIGHTS} {HEADS_AND_CACHES}",
    mutates="k_cache v_cache",
)
class QkvRotaryCache(Op):
    """x: [tokens, columns]; caches: [capacity, heads, width]; out: q as [tokens, heads, width].

    Each may have a leading dim of 1. The weights are those of q, k and v.

    Tables [rows, width / 2] turn pairs (2i, 2i + 1) with `neighbours`; else tables [rows, R] turn
    pairs (i, i + R/2) of the first R dims. Token s takes row table_start + s. Without tables
    nothing turns. Norms of q and k are as long as a head, or as all heads of a token together.
    With a `window`, caches may be rings of what the tokens of a call see. With `v_eps` heads of v
    are normalised, each by itself.
    """

    update: CacheUpdate | None = None  # where caches cannot take values one by one
    rows: int  # of what the kernels store keys and values into

    def build(self) -> None:
        self.take_ends()
        self.k_cache, self.v_cache = take_caches(self)
        self.start_pos = self.live_int("start_pos")
        self.window = take_window(self)
        self.v_eps = self.number("v_eps") if self.has("v_eps") else None
        norms = {"q_norm": "q_eps", "k_norm": "k_eps"}
        caches = (self.k_cache, self.v_cache)
        if takes_values_alone(self, self.k_cache):
            self.rows = self.k_cache.max_dims[-3]
            self.build_heads(*caches, self.start_pos, norms, self.k_cache.dtype.name)
            return
        # They come together in floats first, from the first row on.
        self.rows = numel(self.x.max_dims[:-1])
        nbytes = 4 * self.rows * numel(self.k_cache.max_dims[-2:])
        k, v = (self.scratch(f"{name} of the tokens", nbytes) for name in ("keys", "values"))
        first_row = self.builder.fixed_int(self.start_pos.id, 0)
        self.build_heads(k, v, first_row, norms, F32.name)
        self.update = CacheUpdate(self, k, v, caches, self.start_pos)

    def build_heads(
        self,
        k_cache: Bindable,
        v_cache: Bindable,
        start_pos: LiveInt,
        norms: dict[str, str],  # of heads, and their eps
        store: str,
    ) -> None:
        matrices = self._take_arguments(norms)
        read, summed = self.ends.read, self.ends.summed
        bias, norm = take_biases(self, matrices), take_norm(self, self.columns)
        ends: dict[str, Bindable] = {
            "q_out": self.out,
            "k_cache": k_cache,
            "v_cache": v_cache,
            "cos_table": self.cos,
            "sin_table": self.sin,
            "start_pos": start_pos,
            "table_start": self.table_start,
        }
        rows = rows_of(matrices)
        self.pairs = rows // 2
        at_once = Epilogue(
            {"epilogue": "qkv", "store": store},
            {"bias": bias or read, **ends},
            self.pairs,
            {**bias_fields(bias), **self._places()},
            start="first_head",
            start_rows=self.width,
            each_token=each_token(bias),
        )
        max_tokens = numel(self.x.max_dims[:-1])
        target = self.builder.target
        is_normed = bool(self.norms) or self.v_eps is not None
        self.one_at_once = not is_normed and target.storage_buffers >= BUFFERS_AT_ONCE
        self.heads: Launch | None = None
        if self.one_at_once and (target.fuses_tokens or max_tokens == 1):
            self.kernels = LinearKernels(self, self.x, matrices, at_once, norm, summed=summed)
            return
        # Software adapters take seconds to compile each matrix product: this one others use, too.
        sums = self.scratch("q, k and v", max_tokens * rows * 4)
        apart = make_residual_epilogue(read, rows, sums, bias)
        one = apart if summed is None else make_bias_epilogue(read, rows, sums, bias)
        one = at_once if self.one_at_once else one
        self.kernels = LinearKernels(self, self.x, matrices, one, norm, many=apart, summed=summed)
        self._declare_heads({"qkv": sums, **ends}, store)

    def take_ends(self) -> None:
        self.ends = take_input_output(self)
        self.x, self.out = self.ends.x, self.ends.out

    def _take_arguments(self, norms: dict[str, str]) -> Matrices:
        self.turns = self.has("cos")
        self.cos, self.sin = (
            self.tensor(name, F32, rank=2) if self.turns else self.ends.read
            for name in ("cos", "sin")
        )
        self.table_start = self.live_int("table_start")
        self.neighbours = self.boolean("neighbours")
        self.columns = self.x.max_dims[-1]
        matrices = take_matrices(self, self.columns)
        self.norms = norms if self.has("q_norm") else {}
        self.check_parts(part_rows(matrices))
        self._check_tables()
        self._check_norms()
        return matrices

    def _declare_heads(self, bind: dict[str, Bindable], store: str) -> None:
        bind |= {"q_norm": self.cos, "k_norm": self.cos}  # to have something there
        bind |= {name: self.tensor(name) for name in self.norms}
        self.eps = {"q_eps": 0.0, "k_eps": 0.0, "v_eps": self.v_eps or 0.0}
        self.eps |= {eps: self.number(eps) for eps in self.norms.values()}
        target, plugs = self.builder.target, {"store": store}
        if target.wide:
            plugs["lanes"] = target.lanes_by
        kernel = "attention/qkv_heads_wide" if target.wide else "attention/qkv_heads"
        self.heads = self.launch(kernel, plugs=plugs, bind=bind)

    def _places(self) -> dict[str, object]:
        """Return the parameters of shaders/attention/fragments/qkv_store.wgsl."""
        half = self.rotated // 2
        return {
            "first_head": 0,
            "q_heads": self.q_heads,
            "kv_heads": self.kv_heads,
            "width": self.width,
            "capacity": self.rows,
            "rotated": self.rotated,
            "pair_step": 2 if self.neighbours else 1,
            "pair_gap": 1 if self.neighbours else half,
            "table_width": self.cos.max_dims[1] if self.turns else 0,
            "column_gap": 0 if self.neighbours else half,
        }

    def check_parts(self, part_rows: tuple[int, ...]) -> None:
        q, cache = self.out.max_dims, self.k_cache.max_dims
        self.require(
            2 <= self.x.rank <= 3
            and len(q) == len(cache) == self.x.rank + 1
            and {*self.x.max_dims[:-2], *q[:-3], *cache[:-3]} <= {1},
            f"x {list(self.x.max_dims)}, q {list(q)} and caches {list(cache)} must be of one batch",
        )
        self.q_heads, self.width = q[-2:]
        self.capacity, self.kv_heads = cache[-3:-1]
        q_rows, kv_rows = self.q_heads * self.width, self.kv_heads * self.width
        self.require(
            part_rows == (q_rows, kv_rows, kv_rows)
            and cache[-1] == self.width
            and cache == self.v_cache.max_dims
            and self.k_cache is not self.v_cache
            and self.q_heads % self.kv_heads == 0,
            f"weights of {list(part_rows)} rows do not fit q {list(q)} and caches {list(cache)}, "
            f"{list(self.v_cache.max_dims)}",
        )

    def _check_norms(self) -> None:
        self.normed_by_row = False
        if not self.norms:
            return
        rows = [(self.q_heads * self.width,), (self.kv_heads * self.width,)][: len(self.norms)]
        heads = [(self.width,)] * len(rows)
        norms = [self.tensor(name, F32).max_dims for name in self.norms]
        self.normed_by_row = norms == rows != heads
        self.require(
            (self.normed_by_row and self.v_eps is None) or norms == heads,
            f"norms {norms} fit neither heads of {self.width} nor rows of {rows}",
        )

    def _check_tables(self) -> None:
        self.rotated = 0
        if not self.turns:
            return
        columns = self.cos.max_dims[1]
        self.rotated = 2 * columns if self.neighbours else columns
        fits = self.rotated == self.width if self.neighbours else self.rotated <= self.width
        self.require(
            fits and self.rotated % 2 == 0 and self.cos.max_dims == self.sin.max_dims,
            f"tables {list(self.cos.max_dims)} and {list(self.sin.max_dims)} do not fit heads of "
            f"{self.width}",
        )

    def live(self) -> None:
        self.ends.resize(self)
        check_cache(self, self.start_pos, self.x.dims[-2], self.capacity, self.window)
        for cache in (self.k_cache, self.v_cache):
            self.require_live(cache.dims == cache.max_dims, f"{cache.label} cannot be resized")
        self.live_heads()
        if self.update is not None:
            self.update(1, self.x.dims[-2], self.kv_heads * self.width, self.capacity)

    def live_heads(self) -> None:
        *lead, tokens, columns = self.x.dims
        if self.turns:
            check_rows(self, self.table_start, tokens, self.cos.dims[0], "the rotary table")
            self.require_live(
                self.cos.dims == self.sin.dims and self.cos.dims[1] == self.cos.max_dims[1],
                f"tables {list(self.cos.dims)} and {list(self.sin.dims)} do not fit each other",
            )
        self.require_live(columns == self.columns, f"rows of x are {columns}, not {self.columns}")
        self.out.resize((*lead, tokens, self.q_heads, self.width))
        self.kernels(tokens)
        if self.heads is None:
            return
        if tokens == 1 and self.one_at_once:
            self.heads.skip()
            return
        heads = tokens * (self.q_heads + 2 * self.kv_heads)
        fields = {
            "tokens": tokens,
            "pairs": self.pairs,
            "has_norms": bool(self.norms),
            "normed_by_row": self.normed_by_row,
            "values_normed": self.v_eps is not None,
            **self.eps,
            **self._places(),
        }
        if self.builder.target.wide:
            self.heads(heads, **fields)  # a workgroup for each
        else:
            self.heads.for_each(heads, **fields)


@register("inpage.q_rotary.default", args=f"x {NORM} {WEIGHTS} {HEADS}")
@register("inpage.q_rotary.of_sum", args=f"{SUM} {NORM} {WEIGHTS} {HEADS}")
class QRotary(QkvRotaryCache):
    """The op for queries alone: it has no caches, and the weight of q only."""

    def build(self) -> None:
        self.take_ends()
        self.v_eps = None
        self.rows, self.kv_heads = 1, 0
        keys, values = (self.scratch(name, 16) for name in ("no keys", "no values"))
        start = self.live_int("table_start")
        self.build_heads(keys, values, start, {"q_norm": "q_eps"}, F32.name)

    def check_parts(self, part_rows: tuple[int, ...]) -> None:
        q = self.out.max_dims
        self.require(
            2 <= self.x.rank <= 3
            and len(q) == self.x.rank + 1
            and {*self.x.max_dims[:-2], *q[:-3]} <= {1},
            f"x {list(self.x.max_dims)} and q {list(q)} must be of one batch",
        )
        self.q_heads, self.width = q[-2:]
        self.require(
            part_rows == (self.q_heads * self.width,),
            f"weights of {list(part_rows)} rows do not fit q {list(q)}",
        )

    def live(self) -> None:
        self.ends.resize(self)
        self.live_heads()
