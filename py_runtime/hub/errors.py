"""The errors between this machine and the Hub, in words."""

from py_runtime.base.errors import InpageError, NetworkError
from py_runtime.base.messages import Message, message
from py_runtime.base.sizes import parse_count

UNAUTHORISED, FORBIDDEN, MISSING, TOO_MANY = 401, 403, 404, 429
FINAL = (400, 401, 404, 410, 416, 429)  # what another try would not change, or not soon


class HubError(NetworkError):
    """The Hub refused something, or answered with something else.

    `is_told` if the Hub itself says so, and not a host that it redirects to.
    """

    code = "hub_error"

    def __init__(
        self, said: str | Message, status: int | None = None, is_told: bool = False
    ) -> None:
        super().__init__(said)
        self.status = status
        self.is_final = is_told or status in FINAL

    def facts(self) -> dict[str, object]:
        return {"status": self.status}


class HubAccessError(HubError):
    """The Hub does not give a gated or private repository without a token, or with this one."""

    code = "hub_access"


class HubConsentError(InpageError):
    """The Hub was not asked, since the user has not allowed it."""

    code = "hub_consent"

    def __init__(self) -> None:
        super().__init__(message("hub_consent"))


def refusal(status: int, what: str, headers: dict[str, str], has_token: bool) -> HubError:
    """Return the error of an answer with another status than was hoped for."""
    fault = headers.get("x-error-code", "")
    kind = HubAccessError if status in (UNAUTHORISED, FORBIDDEN) else HubError
    said = _refusal_message(status, what, fault, headers, has_token)
    return kind(said, status, bool(fault))


def _refusal_message(
    status: int, what: str, fault: str, headers: dict[str, str], has_token: bool
) -> Message:
    if status == UNAUTHORISED:
        return message("hub_token_refused" if has_token else "hub_not_public", what=what)
    if status == FORBIDDEN:
        return message("hub_terms_of_account" if has_token else "hub_terms", what=what)
    if status == MISSING:
        codes = {"RevisionNotFound": "hub_no_such_revision", "EntryNotFound": "hub_no_such_file"}
        return message(codes.get(fault, "hub_not_found"), what=what)
    if status == TOO_MANY:
        seconds = parse_count(headers.get("retry-after", ""))
        return message("hub_busy") if seconds is None else message("hub_busy_for", seconds=seconds)
    return message("hub_answered", status=status, what=what)
