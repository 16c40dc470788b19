"""The slots of fields in the tables of .pte and .ptd files, and the kinds of unions.

Only those that are read are here. A union takes two slots: its kind, then its table.
"""

UNION = 0  # in a table that holds nothing else
ITEM = 0  # in a table of one plain value, or of one list of them


# Program files (ET12) ----------------------------------------------------------------------------


class ProgramSlot:
    """The root of a program."""

    PLANS = 1
    CONSTANT_BUFFERS = 2  # before there were segments
    INLINE_DELEGATES = 3
    SEGMENTS = 4
    CONSTANT_SEGMENT = 5
    NAMED_DATA = 7


class InlineDataSlot:
    """Bytes that lie in the flatbuffer itself."""

    BYTES = 0


class SegmentSlot:
    """A segment, counted from where the segments begin."""

    OFFSET = 0
    SIZE = 1


class ConstantSegmentSlot:
    """The data of all constants of the methods."""

    SEGMENT = 0
    OFFSETS = 1


class NamedDataSlot:
    """A segment by its key; in .ptd files, too."""

    KEY = 0
    SEGMENT = 1


class PlanSlot:
    """A method."""

    NAME = 0
    CONTAINER_TYPE = 1
    VALUES = 2
    INPUTS = 3
    OUTPUTS = 4
    CHAINS = 5
    OPERATORS = 6
    DELEGATES = 7


class ContainerTypeSlot:
    """The nesting of the model's own results."""

    OUTPUTS = 1


class OperatorSlot:
    """An operator, which kernel calls refer to."""

    NAME = 0
    OVERLOAD = 1


class DelegateSlot:
    """A part of a method that a backend computes."""

    BACKEND = 0
    DATA = 1


class DelegateDataSlot:
    """The place of a delegate's blob: IN_SEGMENT, or inline."""

    LOCATION = 0
    INDEX = 1


IN_SEGMENT = 1


class ChainSlot:
    """The instructions of a method."""

    INSTRUCTIONS = 2


class InstructionKind:
    """The kinds of instructions."""

    KERNEL_CALL = 1
    DELEGATE_CALL = 2
    MOVE_CALL = 3
    JUMP_IF_FALSE = 4
    FREE = 5


class CallSlot:
    """A call of a kernel or a delegate."""

    INDEX = 0
    ARGS = 1


class MoveSlot:
    """A move between value ids."""

    SOURCE = 0
    DESTINATION = 1


class MethodValueKind:
    """The kinds of a method's values."""

    NULL = 1
    INT = 2
    BOOL = 3
    DOUBLE = 4
    TENSOR = 5
    STRING = 6
    INT_LIST = 7
    DOUBLE_LIST = 8
    BOOL_LIST = 9
    TENSOR_LIST = 10
    OPTIONAL_TENSOR_LIST = 11


class MethodTensorSlot:
    """A tensor as callers of the method see it."""

    SCALAR_TYPE = 0
    STORAGE_OFFSET = 1
    SIZES = 2
    DIM_ORDER = 3
    BUFFER = 5
    DYNAMISM = 8  # 0: its shape is fixed


# A delegate's graph (VK00) -----------------------------------------------------------------------


class GraphSlot:
    """The root of a delegate's graph."""

    CHAIN = 1
    VALUES = 2
    INPUTS = 3
    OUTPUTS = 4
    CONSTANTS = 5


class OpCallSlot:
    """A call of an op in the chain."""

    NAME = 1
    ARGS = 2


class ConstantSlot:
    """Bytes of the blob, or elsewhere under a key."""

    OFFSET = 0
    SIZE = 1
    KEY = 2


class GraphValueKind:
    """The kinds of a graph's values."""

    NULL = 1
    INT = 2
    DOUBLE = 3
    BOOL = 4
    TENSOR = 5
    INT_LIST = 6
    DOUBLE_LIST = 7
    BOOL_LIST = 8
    VALUE_LIST = 9
    STRING = 10
    SYMINT = 11


class GraphTensorSlot:
    """A tensor on the GPU."""

    DTYPE = 0
    DIMS = 1
    CONSTANT = 2


# Data files (FT01) -------------------------------------------------------------------------------


class TensorDataSlot:
    """The root of a .ptd file."""

    SEGMENTS = 1
    NAMED_DATA = 2
