"""The one decoder's sizes and choices, in the parts that a layer is composed of."""

from dataclasses import dataclass

TABLES = ("cos", "sin")
LOCAL = "_local"  # ends the names of the rotary tables that sliding layers have to themselves
QUERY = "_query"  # ends the names of those that turn queries alone, where these are scaled, too

# Activations of the gate; gelu by its approximation with tanh. The gate of gpt-oss, which only
# experts have, is within bounds.
SILU, GELU, CLAMPED = "silu", "gelu", "clamped"
RELU_SQUARED = "relu2"  # of an MLP without a gate: down(relu(up(x))²)
# Where a layer has norms: ahead of attention and MLP, after both, or in both places.
BEFORE, AFTER, AROUND = "before", "after", "around"
# How q and k are normalised: each head on its own, or all heads of a token together.
HEADS, ROWS = "heads", "rows"
# The kinds of mixers: the part of a layer in which tokens see each other.
ATTENTION, SHORT_CONV, DELTA_NET, MAMBA = "attention", "short convolution", "delta net", "mamba"
BESIDE = "attention beside mamba"  # both see the same, and their sum is added
NOTHING = "nothing"  # an MLP alone
SOFTMAX, SIGMOID = "softmax", "sigmoid"  # how scores of experts become shares


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer: the properties that set some layers of a model apart from the others."""

    window: int | None = None  # positions a token sees, its own included; None: all before it
    tables: str | None = ""  # ends the names of its rotary tables; None: heads do not turn
    mixer: str = ATTENTION
    is_dense: bool = False  # it has one MLP, where other layers have experts
    head_dim: int | None = None  # where its heads have a width of their own; all of it turns
    hidden: int | None = None  # where its MLP has a width of its own
    shares: int | None = None  # the layer whose keys and values it sees, in place of its own
    has_mlp: bool = True

    @property
    def mixes(self) -> bool:
        return self.mixer != NOTHING

    @property
    def is_one_part(self) -> bool:
        """A mixer or an MLP, behind one norm, where other layers have both behind a norm each."""
        return not (self.mixes and self.has_mlp)


@dataclass(frozen=True, kw_only=True)
class AttentionPart:
    """Attention with grouped heads, of the layers that have it."""

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool
    o_bias: bool
    qk_norm: str | None  # HEADS or ROWS
    value_norm: bool  # heads of v are normalised, without weights
    scale: float | None  # of scores; None: head_dim^-½
    score_cap: float | None  # scores s become cap · tanh(s / cap)
    sinks: bool  # scores that take a share of the softmax for nothing
    is_gated: bool  # what it gives is multiplied with sigmoid(x Wgᵀ)

    def head_dim_of(self, kind: LayerKind) -> int:
        return kind.head_dim or self.head_dim


@dataclass(frozen=True, kw_only=True)
class RopePart:
    """Rotary positions of heads."""

    rotated: int  # how many of head_dim's elements turn
    scaled_queries: bool  # by their positions: queries have rotary tables of their own


@dataclass(frozen=True)
class DeltaSizes:
    """Heads of a gated delta net."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    # Value heads that share a key head lie so many apart as there are key heads; else side by side.
    tiled: bool = False

    @property
    def values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def columns(self) -> int:
        """Queries, keys and values of a token."""
        return 2 * self.key_heads * self.key_dim + self.values


@dataclass(frozen=True, kw_only=True)
class ScanSizes:
    """Heads of a Mamba-2 mixer, whose groups of heads share what is written and asked."""

    heads: int
    head_dim: int
    state_dim: int
    groups: int
    norm_groups: int  # of the columns that are normalised together; 0: there is no norm
    norm_eps: float
    conv_bias: bool
    proj_bias: bool  # of both projections

    @property
    def values(self) -> int:
        return self.heads * self.head_dim

    @property
    def columns(self) -> int:
        """The convolved part of a token: values, and B and C of the groups."""
        return self.values + 2 * self.groups * self.state_dim

    @property
    def projected(self) -> int:
        """The width of what a token is projected to: gates, the convolved part, time steps."""
        return self.values + self.columns + self.heads


@dataclass(frozen=True, kw_only=True)
class MixerPart:
    """Mixers in place of attention, of the layers that have one."""

    conv_taps: int  # tokens that a convolution reaches over, its own included
    delta: DeltaSizes | None
    scan: ScanSizes | None


@dataclass(frozen=True)
class ExpertSizes:
    """An MLP that is a mixture of many."""

    count: int
    used: int  # by a token
    hidden: int  # width of each
    renormalised: bool  # whether the shares of those used add up to 1
    scoring: str = SOFTMAX  # with SIGMOID, a bias for each expert takes part in the choice
    scale: float = 1.0  # of the shares
    activation: str = SILU
    has_bias: bool = False  # router and experts
    shared: int = 0  # width of one more that all tokens go through


@dataclass(frozen=True, kw_only=True)
class MlpPart:
    """down(activation(gate(x)) * up(x)), by one MLP or by a few of many."""

    hidden: int
    activation: str
    has_bias: bool
    experts: ExpertSizes | None  # in place of each MLP, but for those of dense layers


@dataclass(frozen=True, kw_only=True)
class NormPart:
    """RMS norms of a layer."""

    place: str  # BEFORE, AFTER or AROUND
    eps: float  # of all norms


@dataclass(frozen=True, kw_only=True)
class SeenPart:
    """The part of images in a prompt, whose rows stand in for the embeddings of tokens."""

    whole: bool = False  # the tokens of an image see each other
    deep: int = 0  # so many first layers end with the sum with rows of their own
    # By pairs of a head: which of a token's places turns it, in time, line or column. Empty: tokens
    # have one place, their position.
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """All in which models differ: what they have once, and the parts of their layers."""

    vocabulary: int
    width: int
    layers: int
    context: int  # positions the caches hold
    max_chunk: int  # most tokens in one call
    attention: AttentionPart
    rope: RopePart
    mixer: MixerPart
    mlp: MlpPart
    norms: NormPart
    kinds: tuple[LayerKind, ...]  # of the layers; empty: all are plain
    embedding_scale: float
    per_layer: int  # columns that a token's own embedding has for each layer
    layer_scalars: bool  # each layer ends with a multiplication
    tied: bool  # the head is the embedding
    logit_divisor: float
    logit_cap: float | None
    sees: SeenPart | None = None
    foresees: bool = False  # a head behind the layers, with one of its own, proposes tokens

    def layer_kind(self, number: int) -> LayerKind:
        return self.kinds[number] if number < len(self.kinds) else LayerKind()

    @property
    def with_head(self) -> range:
        """The numbers of all layers, last that of the head if there is one."""
        return range(self.layers + self.foresees)

    def table_columns(self, ending: str) -> int:
        """Return how many of a head's elements the rotary tables with this ending turn."""
        found = (kind.head_dim for kind in self.kinds if kind.tables == ending)
        return next(found, None) or self.rope.rotated

    @property
    def tables(self) -> list[str]:
        """The names of all rotary tables."""
        found = {self.layer_kind(number).tables for number in self.with_head} - {None}
        found |= {QUERY} if self.rope.scaled_queries else set()
        return [f"{table}{ending}" for ending in sorted(map(str, found)) for table in TABLES]
