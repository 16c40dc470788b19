"""Streaming attention on a CPU: large tiles of query rows, and splits only where tiles are few.

The splits of a few tokens lie where they lie for one: each begins at a multiple of their length,
wherever the context ends. So what a token gets depends on no other that is computed with it.
"""

from py_runtime.base.shapes import Dims, ceil_div
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.kv_caches import plugs_of_cache
from py_runtime.ops.kernels.streaming_attention import NO_MASK, Problem, named_strides
from py_runtime.ops.registry import Op

BLOCK = figures_of("attention/fragments/teams")["STEP"]  # positions of the shortest split
TILE_ROWS = 48  # query rows that share the keys and values of a block
TILE_VALUES = 1 << 16  # of a tile's query rows, which fit into a thread's scratch memory
MAX_WIDTH = TILE_VALUES // 4
ENOUGH_TILES = 12  # keep the cores busy; fewer are cut into splits
FEW_TOKENS = 16  # as in shaders/linear/tokens.h
FEW_SPLITS = 32  # of a few tokens, as in shaders/attention/attend_wide.c


class CpuAttention:
    """The launches of an attention op, and the scratch memory between them.

    The kernels are shaders/attention/attend_wide.c and reduce_wide.c, with strides in f32.
    """

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
        op.require(most.width <= MAX_WIDTH, f"heads of {most.width} are wider than {MAX_WIDTH}")
        k = bind["k"]
        assert isinstance(k, LiveTensor)
        self.window, self.softcap = window, softcap
        width = 4 * ceil_div(most.width, 4)
        self.tile_rows = min(TILE_ROWS, TILE_VALUES // width)
        self.max_splits = ceil_div(max_context, BLOCK)
        # The rows of all splits are at most this many, at any live size (see _splits).
        all_rows = most.batches * most.heads * most.tokens
        rows = min(ENOUGH_TILES * self.tile_rows, self.max_splits * all_rows)
        few_rows = most.batches * most.heads * min(most.tokens, FEW_TOKENS)
        # A window may begin and end within a split.
        rows = max(rows, (min(FEW_SPLITS, self.max_splits) + 1) * few_rows)
        reduced: dict[str, Bindable] = {
            "sums": op.scratch("weighted sums", rows * width * 4),
            "stats": op.scratch("softmax statistics", rows * 2 * 4),
            "out": out,
            **({} if sinks is None else {"sinks": sinks}),
        }
        sink_plugs = {"sinks": "none" if sinks is None else "learned"}
        plugs = {
            "mask": mask,
            "score": "plain" if softcap is None else "capped",
            **plugs_of_cache(k),
            "lanes": op.builder.target.lanes_by,
            **sink_plugs,
        }
        self.attend = op.launch("attention/attend_wide", plugs=plugs, bind={**reduced, **bind})
        self.reduce = op.launch("attention/reduce_wide", plugs=sink_plugs, bind=reduced)

    def __call__(
        self,
        problem: Problem,
        context: int,
        scale: float,
        mask_kind: int = NO_MASK,
        mask_strides: Dims = (0, 0, 0, 0),
        together: int = 0,  # so many first tokens see each other
        leaves_splits: bool = False,  # no kernel for CPUs takes splits
    ) -> bool:
        """Set the launches; return False, as no splits are left for a later kernel to reduce."""
        # Each token of a call sees a window; these overlap but for the tokens' own positions.
        walked = context if self.window is None else min(context, self.window + problem.tokens)
        rows = problem.tokens * problem.group
        heads = problem.batches * problem.kv_heads
        tiles = ceil_div(rows, self.tile_rows)  # of a head
        if problem.tokens <= FEW_TOKENS:
            splits = self._few_splits(problem, context)
        else:
            splits = self._splits(heads * tiles, walked)
        sizes = {
            "kv_heads": problem.kv_heads,
            "group": problem.group,
            "heads": heads,
            "rows": rows,
            "tiles": tiles,
            "splits": splits,
            "width": problem.width,
            **named_strides("q", problem.q_strides),
        }
        self.attend(
            splits * heads * tiles,
            **sizes,
            **named_strides("kv", problem.kv_strides),
            kv_tokens=problem.kv_tokens,
            scale=scale,
            softcap=self.softcap or 0.0,
            window=self.window or 0,
            kv_rows=problem.kv_rows,
            mask_kind=mask_kind,
            mask_strides=mask_strides,
            together=together,
        )
        if splits > 1:
            self.reduce(heads * rows, **sizes)
        else:
            self.reduce.skip()
        return False

    def _few_splits(self, problem: Problem, context: int) -> int:
        """Return how many splits hold what the tokens see."""
        length = BLOCK * ceil_div(problem.kv_rows, FEW_SPLITS * BLOCK)
        unseen = 0 if self.window is None else max(0, context - problem.tokens + 1 - self.window)
        return ceil_div(context, length) - unseen // length

    def _splits(self, tiles: int, walked: int) -> int:
        """Return the number of splits, which doubles: decoding hardly ever changes the grid."""
        filled = max(1, walked // BLOCK)
        return max(1, min(self.max_splits, ENOUGH_TILES // tiles, 1 << (filled.bit_length() - 1)))
