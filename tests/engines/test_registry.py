"""The table of engines."""

from __future__ import annotations

import pytest

from gpunode.engines.containerd.engine import Containerd
from gpunode.engines.registry import ENGINES, engine, register
from gpunode.errors import UnsupportedHost
from gpunode.model.spec import Spec
from gpunode.specfile import put


def test_every_name_a_spec_may_hold_has_an_engine() -> None:
    assert put(Spec(), "runtime", ",".join(ENGINES)).runtimes == tuple(ENGINES)
    assert [engine(name).name for name in ENGINES] == list(ENGINES)


def test_two_engines_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two engines are called containerd"):
        register(Containerd())


def test_an_unknown_engine_is_refused_with_the_list() -> None:
    with pytest.raises(UnsupportedHost) as refused:
        engine("lxc")
    assert "docker, containerd" in refused.value.evidence
