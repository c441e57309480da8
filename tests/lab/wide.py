"""Cases that a run without --wide leaves out: of three releases the middle one, of dnf 4 and dnf5 the newer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

MIDDLE = ("debian13",)


def cases(every: Iterable[object], wide: Collection[object] = MIDDLE) -> list[object]:
    """Parameters of a test, in order; those in `wide` are marked."""
    return [pytest.param(case, marks=pytest.mark.wide) if case in wide else case for case in every]
