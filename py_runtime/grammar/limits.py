"""Limits of size: schemas come from strangers, and a page has little time and memory."""

from py_runtime.base.errors import RequestError
from py_runtime.base.messages import Message, message

PARAM = "response_format"

MAX_DEPTH = 32  # containers inside one another, in the text
MAX_SHORTEST = 16_384  # bytes of the shortest text that a schema allows
MAX_DIGITS = 18  # of a number, before the point
MAX_FRACTION_DIGITS = 17
EXACT_DIGITS = 15  # so many significant digits tell any two doubles apart
MAX_SCHEMA_NODES = 4_000
MAX_SCHEMA_DEPTH = 200  # lists and objects inside one another; a page's stack is small
MAX_SCHEMA_VALUES = 200_000
MAX_REFERENCES = 64  # $ref, allOf, anyOf and oneOf inside one another, with nothing in between
MAX_OPTIONS = 256  # alternatives of one place in a schema
MAX_COMPARISONS = 5_000  # of schemas, to see that those of a oneOf have nothing in common
MAX_LITERAL_BYTES = 1 << 16  # of all enum values and property names together
MAX_PATTERN_STATES = 512
MAX_PATTERN_WORK = 200_000  # steps taken while a pattern becomes an automaton
MAX_NFA_STATES = 4_000
MAX_QUOTED = 60  # characters of what a schema says, in messages


def refuse(fault: str | Message, path: str = "") -> RequestError:
    """Return the error that names the place in the schema."""
    if path:
        return RequestError(message("schema_refused_at", place=path, fault=fault), PARAM)
    return RequestError(message("schema_refused", fault=fault), PARAM)
