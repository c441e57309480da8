"""The table of engines."""

from __future__ import annotations

import pytest

from gpunode.engines.registry import RUNTIMES, engine
from gpunode.errors import UnsupportedHost
from gpunode.model.spec import RUNTIMES as NAMES


def test_every_name_a_spec_may_hold_has_an_engine() -> None:
    assert tuple(RUNTIMES) == NAMES
    assert [engine(name).name for name in NAMES] == list(NAMES)


def test_an_unknown_engine_is_refused_with_the_list() -> None:
    with pytest.raises(UnsupportedHost) as refused:
        engine("lxc")
    assert "docker, containerd" in refused.value.evidence
