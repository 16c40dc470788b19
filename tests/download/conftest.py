"""The imitation of the Hub, as tests/hub/ has it."""

from tests.hub.conftest import hub

__all__ = ["hub"]
