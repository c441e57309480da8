"""What a host sends is read as if it came for the first time: else the second try of a measurement costs nothing."""

from __future__ import annotations

import pytest

from tests.facts.forgetful import forget


@pytest.fixture(autouse=True)
def _nothing_was_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)
