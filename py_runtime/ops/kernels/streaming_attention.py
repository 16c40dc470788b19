"""Attention that streams: scores are never stored.

The context is cut into splits that run side by side, so that one token at the end of a long context
keeps a device as busy as a long prompt does.
"""

from dataclasses import dataclass, replace

from py_runtime.base.shapes import Dims, ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable, Launch
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.kernels.workgroups import usual_workgroup
from py_runtime.ops.registry import Op

TILE_ROWS = figures_of("attention/fragments/tiles")["TILE_ROWS"]
TILE_STATS_BYTES = 2 * 4 * TILE_ROWS  # the largest score and the sum of each row
MASKS = figures_of("attention/fragments/sight_masked")
NO_MASK, FLOAT_MASK, BOOL_MASK = (MASKS[f"{kind}_MASK"] for kind in ("NO", "FLOAT", "BOOL"))


@dataclass(frozen=True)
class AttendWay:
    """How attention is shared: invocations alone, a tile each, or a workgroup together on one."""

    attend: str
    reduce: str
    block: int  # positions of the shortest split
    enough_tiles: int  # a device is busy with so many; fewer are cut into splits
    max_splits: int
    alone: int  # so few positions are not worth sharing: no splits, and no kernel to add up
    workgroup: int | None = None  # invocations; None: as many as suit graphics processors


TILE_EACH = AttendWay(
    "attention/attend",
    "attention/reduce",
    block=figures_of("attention/attend")["BLOCK"],
    enough_tiles=4096,
    max_splits=64,
    alone=0,
)
# Software runs a workgroup on one core, so that small ones keep all cores busy; it has few of them,
# and splits that nobody waits for only cost what puts them together.
ON_CORES = replace(TILE_EACH, enough_tiles=512, max_splits=32, workgroup=8)
MIN_SPLITS = 8  # of those two, at any context
TOGETHER = AttendWay(
    "attention/attend_wide",
    "attention/reduce_wide",
    block=figures_of("attention/attend_wide")["STEP"],
    enough_tiles=512,
    max_splits=16,
    alone=256,
)
MAX_QUADS_TOGETHER = figures_of("attention/attend_wide")["MAX_QUADS"]
ATTEND_BLOCK = "attention/attend_block_wide"
BLOCK_INVOCATIONS = figures_of(ATTEND_BLOCK)["WORKGROUP"]
ENDLESS = 2**31  # longer than any context
ROW_PARTS = 32  # of attention/attend_row_wide, where a workgroup may be so large
MAX_QUADS_OF_A_ROW = 128  # as many as the smallest workgroup has invocations


@dataclass(frozen=True)
class Problem:
    """Sizes and element strides of one attention; q and out have the same strides."""

    batches: int
    tokens: int
    heads: int
    kv_tokens: int
    kv_heads: int
    width: int
    kv_rows: int  # of the caches: positions beyond them begin again at the first
    q_strides: Dims  # batch, token, head
    kv_strides: Dims  # batch, token, head

    @property
    def group(self) -> int:
        """Query heads that share a key and value head."""
        return self.heads // self.kv_heads

    @property
    def tiles_of_head(self) -> int:
        return ceil_div(self.tokens * self.group, TILE_ROWS)

    @property
    def tiles(self) -> int:
        return tile_count(self.batches, self.tokens, self.heads, self.kv_heads)


def problem_over_cache(q: Dims, cache: Dims) -> Problem:
    """q: [..., tokens, heads, width]; cache: [..., capacity, kv heads, width]; a batch before."""
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


def tile_count(batches: int, tokens: int, heads: int, kv_heads: int) -> int:
    """A tile is so many query rows that share a key and value head."""
    return batches * kv_heads * ceil_div(tokens * (heads // kv_heads), TILE_ROWS)


class StreamingAttention:
    """The kernels both ops share, and the scratch between them."""

    def __init__(
        self,
        op: Op,
        most: Problem,
        max_context: int,
        bind: dict[str, Bindable],  # q, k, v and what the fragment of sight binds
        out: Bindable,
        sight: str,  # what a row sees: attention/fragments/sight_*
        window: int | None = None,  # of a windowed sight
        softcap: float | None = None,
        sinks: LiveTensor | None = None,  # [query heads]: scores that take a share for nothing
    ) -> None:
        self.window, self.softcap = window, softcap
        self.unit = 4 if most.width % 4 == 0 else 1
        self.way = ON_CORES
        if op.builder.target.wide:
            together = self.unit == 4 and most.width <= 4 * MAX_QUADS_TOGETHER
            self.way = TOGETHER if together else TILE_EACH
        self.max_splits = min(self.way.max_splits, ceil_div(max_context, self.way.block))
        written = self._scratches(op, most)
        # What puts splits together needs these.
        self.sink_plugs = {"sinks": "none" if sinks is None else "learned"}
        self.left = {**written, **({} if sinks is None else {"sinks": sinks})}
        kv = bind["k"]
        assert isinstance(kv, LiveTensor)
        plugs = {"sight": sight, "score": "plain" if softcap is None else "capped"}
        if self.unit == 4:
            plugs["kv"] = kv.dtype.name
        # Without splits, results of these are whole.
        whole_plugs = {**plugs, "lanes": op.builder.target.lanes_by, **self.sink_plugs}
        whole_bind = {**self.left, "out": out, **bind}
        constants = self._constants(op, most)
        if self.way is TOGETHER:
            self.attend = op.launch(
                self.way.attend, plugs=whole_plugs, bind=whole_bind, constants=constants
            )
        else:
            self.attend = op.launch(
                self.way.attend,
                plugs={**plugs, "loads": "quads" if self.unit == 4 else "scalars"},
                bind={**written, **bind},
                constants=constants,
            )
        self.attend_row = self._launch_of_rows(op, most, whole_plugs, whole_bind)
        self.attend_block = self._launch_of_blocks(op, most, whole_plugs, whole_bind)
        self.reduce = op.launch(
            self.way.reduce,
            plugs=self.sink_plugs,
            bind={**self.left, "out": out},
            constants=constants,
        )

    def _scratches(self, op: "Op", most: Problem) -> dict[str, Bindable]:
        # splits * tiles is at most this, at any live size (see splits)
        tiles = min(max(self.way.enough_tiles, most.tiles), self.max_splits * most.tiles)
        tile_bytes = ceil_div(most.width, 4) * 4 * TILE_ROWS * 4
        return {
            "sums": op.scratch("weighted sums", tiles * tile_bytes),
            "stats": op.scratch("softmax statistics", tiles * TILE_STATS_BYTES),
        }

    def _constants(self, op: "Op", most: Problem) -> dict[str, float]:
        """Of the kernels for tiles, and of those that put splits together."""
        if self.way is TOGETHER:
            return {"QUADS": most.width // 4, "WORKGROUP": usual_workgroup(op.builder.limits)}
        return {} if self.way.workgroup is None else {"WORKGROUP": self.way.workgroup}

    def _launch_of_rows(
        self, op: "Op", most: Problem, plugs: dict[str, str], bind: dict[str, Bindable]
    ) -> Launch | None:
        """Heads that are too wide for a tile of rows together: a token's rows are not."""
        is_wide = op.builder.target.wide
        if not is_wide or self.unit != 4 or most.width > 4 * MAX_QUADS_OF_A_ROW:
            return None
        max_invocations = op.builder.limits["max_compute_invocations_per_workgroup"]
        workgroup = min(max(ROW_PARTS * most.width // 4, 256), 1024, max_invocations)
        return op.launch(
            "attention/attend_row_wide",
            plugs=plugs,
            bind=bind,
            constants={"QUADS": most.width // 4, "WORKGROUP": workgroup},
        )

    def _launch_of_blocks(
        self, op: "Op", most: Problem, plugs: dict[str, str], bind: dict[str, Bindable]
    ) -> Launch | None:
        """For prompts: several tiles share what is read."""
        group = 32 if most.width // 4 <= 32 else 64
        self.tiles_of_block = BLOCK_INVOCATIONS // group
        if self.way is not TOGETHER or not self._fills_a_block(most):
            return None
        return op.launch(
            ATTEND_BLOCK,
            plugs={name: plug for name, plug in plugs.items() if name != "lanes"},
            bind=bind,
            constants={"QUADS": most.width // 4, "GROUP": group},
        )

    def _fills_a_block(self, problem: Problem) -> bool:
        """Whether there are rows enough to share what is read among several tiles."""
        return problem.tiles_of_head >= self.tiles_of_block

    def splits_of_one(self, problem: Problem) -> int:
        """Of one token's attention over a long context."""
        tiles = problem.batches * problem.kv_heads * ceil_div(problem.group, TILE_ROWS)
        return self.splits(self.way, tiles, ENDLESS)

    def splits(self, way: AttendWay, tiles: int, context: int) -> int:
        """A longer context makes longer splits; while they are the shortest, their number doubles.

        So a step of decoding hardly ever changes the grid.
        """
        if context <= way.alone:
            return 1
        most = max(1, min(self.max_splits, way.max_splits, way.enough_tiles // tiles))
        if way is TOGETHER:
            return most  # a linear that puts them together is compiled for so many
        filled = max(MIN_SPLITS, ceil_div(context, way.block))
        return min(most, 1 << (filled - 1).bit_length())

    def __call__(
        self,
        problem: Problem,
        context: int,
        scale: float,
        mask_kind: int = NO_MASK,
        mask_strides: Dims = (0, 0, 0, 0),
        leaves_splits: bool = False,  # of one token, to somebody else
    ) -> bool:
        """Whether splits were left."""
        # The tokens of a call see a window each, which overlap but for their own positions.
        walked = context if self.window is None else self.window + problem.tokens
        # A token's rows go by workgroups wherever there is a kernel for them.
        is_row = self.attend_row is not None and problem.tokens == 1
        way = TOGETHER if is_row else self.way
        splits = self.splits(way, problem.tiles, min(context, walked))
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
            **self._named("q", problem.q_strides, self.unit),
            **self._named("kv", problem.kv_strides, self.unit),
            "kv_tokens": problem.kv_tokens,
            "scale": scale,
            "softcap": self.softcap or 0.0,
            "window": self.window or 0,
            "kv_rows": problem.kv_rows,
            "mask_kind": mask_kind,
            "mask_strides": mask_strides,
        }
        chosen, groups = self._chosen(problem, splits)
        for attend in (self.attend, self.attend_row, self.attend_block):
            if attend is not None and attend is not chosen:
                attend.skip()
        if way is TOGETHER:
            chosen(groups, **fields)
        else:
            chosen.for_each(groups, **fields)
        left = leaves_splits and problem.tokens == 1 and splits > 1
        if left or (way is TOGETHER and splits == 1):
            self.reduce.skip()
        else:
            self._put_together(problem, sizes)
        return left

    def _chosen(self, problem: Problem, splits: int) -> tuple[Launch, int]:
        """The kernel for this many tokens, and its workgroups; alone, its invocations."""
        by_rows = problem.tokens == 1 and (splits == 1 or self.way is not TOGETHER)
        if self.attend_row is not None and by_rows:
            return self.attend_row, splits * problem.batches * problem.heads
        if self.attend_block is not None and self._fills_a_block(problem):
            blocks = ceil_div(problem.tiles_of_head, self.tiles_of_block)
            return self.attend_block, splits * problem.batches * problem.kv_heads * blocks
        return self.attend, splits * problem.tiles

    def _put_together(self, problem: Problem, sizes: dict[str, int]) -> None:
        if self.way is TOGETHER:
            groups = TILE_ROWS * problem.tiles
            self.reduce(groups, **sizes, **self._named("q", problem.q_strides, self.unit))
        else:
            quads = problem.tiles * ceil_div(problem.width, 4)
            self.reduce.for_each(quads, **sizes, **self._named("q", problem.q_strides, 1))

    @staticmethod
    def _named(prefix: str, strides: Dims, unit: int) -> dict[str, int]:
        names = (f"{prefix}_{axis}" for axis in ("batch", "token", "head"))
        return dict(zip(names, (stride // unit for stride in strides), strict=True))


def attention_over_cache(
    op: Op,
    q: LiveTensor,
    caches: tuple[LiveTensor, LiveTensor],  # of keys and values
    start_pos: LiveInt,
    out: Bindable,
    window: int | None,
    softcap: float | None,
    sinks: LiveTensor | None,
) -> StreamingAttention:
    """Causal attention over all that caches hold, or the last positions of it."""
    k, v = caches
    return StreamingAttention(
        op,
        problem_over_cache(q.max_dims, k.max_dims),
        k.max_dims[-3],
        {"q": q, "k": k, "v": v, "start_pos": start_pos},
        out,
        "causal" if window is None else "windowed",
        window,
        softcap,
        sinks,
    )
