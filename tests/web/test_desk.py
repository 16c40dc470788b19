"""Tests that share a browser context find nothing of each other in it."""

import pytest

from tests.web.user import Desk

pytestmark = pytest.mark.browser

LEAVE = "() => { localStorage.left = sessionStorage.left = 'something'; }"
LEFT = "[localStorage.left, sessionStorage.left].filter(Boolean)"


def test_a_cleared_desk_keeps_nothing(desk: Desk) -> None:
    for _ in range(2):
        user = desk.tab()
        assert user.records() == []
        assert user.page.evaluate(LEFT) == []
        assert [page for page in desk.context.pages if page is not user.page] == []
        user.ask("Left behind")
        user.page.evaluate(LEAVE)
        desk.clear()
