"""What can go wrong between this machine and the Hub, in words."""

from py_runtime.base.errors import InpageError, NetworkError
from py_runtime.base.messages import message

UNAUTHORISED, FORBIDDEN, MISSING, TOO_MANY = 401, 403, 404, 429


class HubError(NetworkError):
    """The Hub refused something, or answered with something else."""

    code = "hub_error"

    def __init__(self, text: str, status: int | None = None, is_told: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.is_told = is_told  # by the Hub itself, not by a host that it redirects to

    def facts(self) -> dict[str, object]:
        return {"status": self.status}


class HubAccessError(HubError):
    """It is gated or private: a token is needed, or another one."""

    code = "hub_access"


class RefusedError(NetworkError):
    """Another host does not give this to everybody, or leads where nobody should follow."""


class HubConsentError(InpageError):
    """Nobody has allowed to ask the Hub."""

    code = "hub_consent"

    def __init__(self) -> None:
        super().__init__(message("hub_consent"))


def refusal(status: int, what: str, headers: dict[str, str], has_token: bool) -> HubError:
    """To be raised where the Hub answers with another status than was hoped for."""
    fault = headers.get("x-error-code", "")
    kind = HubAccessError if status in (UNAUTHORISED, FORBIDDEN) else HubError
    return kind(_in_words(status, what, fault, headers, has_token), status, bool(fault))


def _in_words(status: int, what: str, fault: str, headers: dict[str, str], has_token: bool) -> str:
    if status == UNAUTHORISED and has_token:
        return (
            f"the Hub does not accept the token for {what}: check that it is whole and has not "
            "expired, and that the name is right"
        )
    if status == UNAUTHORISED:
        return (
            f"the Hub has no {what} that everybody may read: check the name; a gated or private "
            "one needs a token of yours"
        )
    if status == FORBIDDEN:
        advice = "of that account" if has_token else "of yours"
        return (
            f"the Hub does not give {what} to everybody: accept its terms on its page there, and "
            f"use a token {advice}"
        )
    if status == MISSING:
        named = {"RevisionNotFound": "such revision: ", "EntryNotFound": "such file: "}
        return f"the Hub has no {named.get(fault, '')}{what}; check the name"
    if status == TOO_MANY:
        seconds = headers.get("retry-after", "")
        pause = f"{seconds} seconds" if seconds.isdigit() else "some minutes"
        return f"the Hub was asked too often from here: wait {pause}, then try again"
    return f"the Hub answered {status} to a request for {what}: try again later"
