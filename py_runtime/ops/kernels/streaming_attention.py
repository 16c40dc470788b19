"""Streaming attention: an online softmax, so that scores are never stored.

The context is cut into splits that run in parallel, so that one token at the end of a long context
keeps a device as busy as a long prompt does.
"""

from dataclasses import dataclass, replace

from py_runtime.base.shapes import Dims, ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable, Launch
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.kv_caches import plugs_of_cache
from py_runtime.ops.kernels.workgroups import is_roomy, usual_workgroup
from py_runtime.ops.registry import Op

TILE_ROWS = figures_of("attention/fragments/tiles")["TILE_ROWS"]
TILE_STATS_BYTES = 2 * 4 * TILE_ROWS  # the largest score and the sum of each row
MASKS = figures_of("attention/fragments/mask_tensor")
NO_MASK, FLOAT_MASK, BOOL_MASK = (MASKS[f"{kind}_MASK"] for kind in ("NO", "FLOAT", "BOOL"))


@dataclass(frozen=True)
class AttentionVariant:
    """A pair of kernels: an invocation, or a workgroup, attends with one tile over one split."""

    attend: str
    reduce: str
    block: int  # positions of the shortest split
    enough_tiles: int  # keep a device busy; fewer are cut into splits
    max_splits: int
    unsplit: int  # contexts up to so many positions are not split, and need no reduction
    workgroup: int | None = None  # invocations; None: the shader's own


PER_INVOCATION = AttentionVariant(
    "attention/attend",
    "attention/reduce",
    block=figures_of("attention/attend")["BLOCK"],
    enough_tiles=4096,
    max_splits=64,
    unsplit=0,
)
# A software adapter runs a workgroup on one core: small workgroups keep all cores busy. It has few
# cores, so that further splits would only make the reduction longer.
PER_CPU_LANE = replace(PER_INVOCATION, enough_tiles=512, max_splits=32, workgroup=8)
MIN_SPLITS = 8  # of these two variants, at any context
PER_WORKGROUP = AttentionVariant(
    "attention/attend_wide",
    "attention/reduce_wide",
    block=figures_of("attention/attend_wide")["STEP"],
    enough_tiles=512,
    max_splits=16,
    # Measured on an H200 at context 128: a token of a 1B model takes 10 to 16 % less time unsplit.
    unsplit=256,
)
MAX_WORKGROUP_QUADS = figures_of("attention/attend_wide")["MAX_QUADS"]
ENDLESS = 2**31  # positions, more than any context has
# Invocations of attention/attend_row_wide, where the device allows so many. Measured on an H200 at
# context 128: with 1,024 the kernel takes 37 % longer where heads are 128 wide and 40 % where they
# are 256 wide, with 256 a token takes 2 to 6 % longer where they are 64 wide.
ROW_INVOCATIONS = 512
MAX_ROW_QUADS = 128  # as many as the smallest workgroup has invocations
PROMPT = "attention/attend_prompt_wide"
FIGURES = figures_of(PROMPT)
# Tiles of so many rows from which on they are used: fewer would leave a large GPU idle, where
# tiles of TILE_ROWS rows are cut into splits.
MIN_PROMPT_TILES = 32


@dataclass(frozen=True)
class Problem:
    """The sizes and element strides of one attention; q and out have the same strides."""

    batches: int
    tokens: int
    heads: int
    kv_tokens: int
    kv_heads: int
    width: int
    kv_rows: int  # of the caches, which are rings: positions wrap around
    q_strides: Dims  # batch, token, head
    kv_strides: Dims  # batch, token, head

    @property
    def group(self) -> int:
        """The query heads that share a key and value head."""
        return self.heads // self.kv_heads

    @property
    def tiles_of_head(self) -> int:
        return ceil_div(self.tokens * self.group, TILE_ROWS)

    @property
    def prompt_tiles(self) -> int:
        """Return the number of tiles of the kernel for many tokens."""
        rows = self.tokens * self.group
        return self.batches * self.kv_heads * ceil_div(rows, FIGURES["ROWS"])

    @property
    def is_prompt(self) -> bool:
        """Say whether rows of queries fill enough of these tiles to keep a device busy."""
        rows = self.batches * self.kv_heads * self.tokens * self.group
        return rows >= MIN_PROMPT_TILES * FIGURES["ROWS"]

    @property
    def tiles(self) -> int:
        return count_tiles(self.batches, self.tokens, self.heads, self.kv_heads)


def problem_over_cache(q: Dims, cache: Dims) -> Problem:
    """Return the problem of attention over a KV cache.

    q: [..., tokens, heads, width]; cache: [..., capacity, kv heads, width]; a batch may come first.
    """
    tokens, heads, width = q[-3:]
    capacity, kv_heads, _ = cache[-3:]
    return Problem(
        numel(q[:-3]),
        tokens,
        heads,
        tokens,
        kv_heads,
        width,
        capacity,
        q_strides=(tokens * heads * width, heads * width, width),
        kv_strides=(capacity * kv_heads * width, kv_heads * width, width),
    )


def count_tiles(batches: int, tokens: int, heads: int, kv_heads: int) -> int:
    """Count the tiles: TILE_ROWS query rows each, which share a key and value head."""
    return batches * kv_heads * ceil_div(tokens * (heads // kv_heads), TILE_ROWS)


def named_strides(prefix: str, strides: Dims, unit: int = 1) -> dict[str, int]:
    """Return the parameters for the strides of q or of k and v, in units of so many elements."""
    names = (f"{prefix}_{axis}" for axis in ("batch", "token", "head"))
    return dict(zip(names, (stride // unit for stride in strides), strict=True))


class StreamingAttention:
    """The launches of an attention op, and the scratch memory between them."""

    def __init__(
        self,
        op: Op,
        most: Problem,
        max_context: int,
        bind: dict[str, Bindable],  # q, k, v and what the mask's fragment binds
        out: Bindable,
        mask: str,  # attention/fragments/mask_*
        window: int | None = None,  # of a window mask
        softcap: float | None = None,
        sinks: LiveTensor | None = None,  # [query heads]: scores without a value
    ) -> None:
        self.window, self.softcap = window, softcap
        self.unit = 4 if most.width % 4 == 0 else 1
        self.variant = PER_CPU_LANE
        if op.builder.target.wide:
            fits = self.unit == 4 and most.width <= 4 * MAX_WORKGROUP_QUADS
            self.variant = PER_WORKGROUP if fits else PER_INVOCATION
        self.max_splits = min(self.variant.max_splits, ceil_div(max_context, self.variant.block))
        written = self._reserve_scratch(op, most)
        # Whatever reduces the splits needs these.
        self.sink_plugs = {"sinks": "none" if sinks is None else "learned"}
        self.left = {**written, **({} if sinks is None else {"sinks": sinks})}
        kv = bind["k"]
        assert isinstance(kv, LiveTensor)
        plugs = {"mask": mask, "score": "plain" if softcap is None else "capped"}
        if self.unit == 4:
            plugs |= plugs_of_cache(kv)
        # Without splits, these kernels write the output themselves.
        final_plugs = {**plugs, "lanes": op.builder.target.lanes_by, **self.sink_plugs}
        final_bind = {**self.left, "out": out, **bind}
        constants = self._constants(op, most)
        if self.variant is PER_WORKGROUP:
            self.attend = op.launch(
                self.variant.attend, plugs=final_plugs, bind=final_bind, constants=constants
            )
        else:
            self.attend = op.launch(
                self.variant.attend,
                plugs={**plugs, "loads": "quads" if self.unit == 4 else "scalars"},
                bind={**written, **bind},
                constants=constants,
            )
        self.attend_row = self._declare_row_kernel(op, most, final_plugs, final_bind)
        self.attend_prompt = self._declare_prompt_kernel(op, most, final_plugs, final_bind)
        self.reduce = op.launch(
            self.variant.reduce,
            plugs=self.sink_plugs,
            bind={**self.left, "out": out},
            constants=constants,
        )

    def _reserve_scratch(self, op: "Op", most: Problem) -> dict[str, Bindable]:
        # splits * tiles is at most this, at any live size (see splits)
        tiles = min(max(self.variant.enough_tiles, most.tiles), self.max_splits * most.tiles)
        tile_bytes = ceil_div(most.width, 4) * 4 * TILE_ROWS * 4
        return {
            "sums": op.scratch("weighted sums", tiles * tile_bytes),
            "stats": op.scratch("softmax statistics", tiles * TILE_STATS_BYTES),
        }

    def _constants(self, op: "Op", most: Problem) -> dict[str, float]:
        """Return the constants of the kernels for tiles, and of those that reduce splits."""
        if self.variant is PER_WORKGROUP:
            return {"QUADS": most.width // 4, "WORKGROUP": usual_workgroup(op.builder.limits)}
        return {} if self.variant.workgroup is None else {"WORKGROUP": self.variant.workgroup}

    def _declare_row_kernel(
        self, op: "Op", most: Problem, plugs: dict[str, str], bind: dict[str, Bindable]
    ) -> Launch | None:
        """Declare the kernel for one token, which takes wider heads than tiles do.

        Measured on an H200 at context 128: without it, one token takes 11 to 37 % longer.
        """
        is_wide = op.builder.target.wide
        if not is_wide or self.unit != 4 or most.width > 4 * MAX_ROW_QUADS:
            return None
        max_invocations = op.builder.limits["max_compute_invocations_per_workgroup"]
        return op.launch(
            "attention/attend_row_wide",
            plugs=plugs,
            bind=bind,
            constants={
                "QUADS": most.width // 4,
                "WORKGROUP": min(ROW_INVOCATIONS, max_invocations),
            },
        )

    def _declare_prompt_kernel(
        self, op: "Op", most: Problem, plugs: dict[str, str], bind: dict[str, Bindable]
    ) -> Launch | None:
        """Declare the kernel for many tokens, whose tiles take more of a workgroup's memory."""
        quads = most.width // 4
        takes = self.variant is PER_WORKGROUP and is_roomy(op.builder.limits)
        if not takes or quads > FIGURES["MAX_QUADS"] or not most.is_prompt:
            return None
        at_once = min(FIGURES["POSITIONS"], FIGURES["VALUES"] // quads)
        return op.launch(
            PROMPT,
            plugs={slot: plug for slot, plug in plugs.items() if slot != "lanes"},
            bind={name: bound for name, bound in bind.items() if name not in ("sums", "stats")},
            constants={"QUADS": quads, "AT_ONCE": 1 << (at_once.bit_length() - 1)},
        )

    def splits_of_one(self, problem: Problem) -> int:
        """Return the number of splits of one token's attention over a long context."""
        tiles = problem.batches * problem.kv_heads * ceil_div(problem.group, TILE_ROWS)
        return self.splits(self.variant, tiles, ENDLESS)

    def splits(self, variant: AttentionVariant, tiles: int, context: int) -> int:
        """Return the number of splits.

        A longer context makes longer splits; while they are the shortest, their number doubles. So
        a step of decoding hardly ever changes the grid.
        """
        if context <= variant.unsplit:
            return 1
        most = max(1, min(self.max_splits, variant.max_splits, variant.enough_tiles // tiles))
        if variant is PER_WORKGROUP:
            return most  # a linear that reduces them is compiled for this number
        filled = max(MIN_SPLITS, ceil_div(context, variant.block))
        return min(most, 1 << (filled - 1).bit_length())

    def __call__(
        self,
        problem: Problem,
        context: int,
        scale: float,
        mask_kind: int = NO_MASK,
        mask_strides: Dims = (0, 0, 0, 0),
        together: int = 0,  # so many first tokens see each other
        leaves_splits: bool = False,  # one token's splits are reduced by a later kernel
    ) -> bool:
        """Set the launches; return whether splits are left for a later kernel to reduce."""
        # Each token of a call sees a window; these overlap but for the tokens' own positions.
        walked = context if self.window is None else self.window + problem.tokens
        # One token's rows take a workgroup each wherever there is a kernel for that.
        is_row = self.attend_row is not None and problem.tokens == 1
        variant = PER_WORKGROUP if is_row else self.variant
        is_prompt = self.attend_prompt is not None and problem.is_prompt
        splits = 1 if is_prompt else self.splits(variant, problem.tiles, min(context, walked))
        sizes = {
            "kv_heads": problem.kv_heads,
            "group": problem.group,
            "heads": problem.batches * problem.kv_heads,
            "rows": problem.tokens * problem.group,
            "tiles": problem.tiles_of_head,
            "splits": splits,
            "width": problem.width,
        }
        fields = {
            **sizes,
            **named_strides("q", problem.q_strides, self.unit),
            **named_strides("kv", problem.kv_strides, self.unit),
            "kv_tokens": problem.kv_tokens,
            "scale": scale,
            "softcap": self.softcap or 0.0,
            "window": self.window or 0,
            "kv_rows": problem.kv_rows,
            "mask_kind": mask_kind,
            "mask_strides": mask_strides,
            "together": together,
        }
        chosen, groups = self._choose(problem, splits)
        for attend in (self.attend, self.attend_row, self.attend_prompt):
            if attend is not None and attend is not chosen:
                attend.skip()
        if variant is PER_WORKGROUP:
            chosen(groups, **fields)
        else:
            chosen.for_each(groups, **fields)
        left = leaves_splits and problem.tokens == 1 and splits > 1
        if left or (variant is PER_WORKGROUP and splits == 1):
            self.reduce.skip()
        else:
            self._reduce_splits(problem, sizes)
        return left

    def _choose(self, problem: Problem, splits: int) -> tuple[Launch, int]:
        """Return the kernel for this many tokens, and its workgroups or, per invocation, lanes."""
        if self.attend_prompt is not None and problem.is_prompt:
            return self.attend_prompt, problem.prompt_tiles
        by_rows = problem.tokens == 1 and (splits == 1 or self.variant is not PER_WORKGROUP)
        if self.attend_row is not None and by_rows:
            return self.attend_row, splits * problem.batches * problem.heads
        return self.attend, splits * problem.tiles

    def _reduce_splits(self, problem: Problem, sizes: dict[str, int]) -> None:
        if self.variant is PER_WORKGROUP:
            groups = TILE_ROWS * problem.tiles
            self.reduce(groups, **sizes, **named_strides("q", problem.q_strides, self.unit))
        else:
            quads = problem.tiles * ceil_div(problem.width, 4)
            self.reduce.for_each(quads, **sizes, **named_strides("q", problem.q_strides, 1))
