"""For tests of what it costs, or gives, to read something for the first time, however often they do."""

from __future__ import annotations

from typing import Any

import pytest

from gpunode.facts import kept_parts, nvlink, wire
from gpunode.facts.seen_again import SeenAgain


class Forgetful(SeenAgain[Any, Any]):
    def get(self, key: object) -> None:
        """Nothing was ever seen."""


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_ALIKE", Forgetful(limit_bytes=1 << 20))
    monkeypatch.setattr(kept_parts, "_HELD", Forgetful(limit_bytes=1 << 20))
    monkeypatch.setattr(nvlink, "_counted", nvlink._counted.__wrapped__)
