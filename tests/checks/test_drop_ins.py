"""Drop-ins that k0s exits on, and one that CRI-O never reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable
from tests.checks import hosts as h

DROP_IN = "/etc/k0s/containerd.d/nvidia.toml"
MISPLACED = "/etc/crio/conf.d/99-nvidia.toml"


def outcome(id: str, host: HostFacts) -> CheckOutcome:
    return run_all(host, None, load_catalog()).results[id].outcome


def k0s(version: str | None, text: str, *, active: bool = False) -> HostFacts:
    engine = RuntimeFacts("k0s", None, "/etc/k0s/containerd.toml", "k0sworker.service", "", active=active)
    return h.host(runtimes=(replace(engine, embedded_in=version),), files={DROP_IN: FileFacts(DROP_IN, text)})


@pytest.mark.parametrize(
    ("version", "text", "found"),
    [
        ("1.36.1+k0s.0", "version = 2\n", True),
        ("1.36.1+k0s.0", "version = 3\n", False),
        ("1.35.4+k0s.0", "version = 2\n", False),
        ("1.36.1+k0s.0", "version = \n", False),
    ],
    ids=["an old one", "a new one", "an older k0s", "one that nobody can read"],
)
def test_k0s_1_36_exits_on_a_drop_in_of_version_2(version: str, text: str, found: bool) -> None:
    seen = outcome("rt.drop-ins", k0s(version, text))
    assert isinstance(seen, Finding) is found
    if isinstance(seen, Finding):
        assert DROP_IN in seen.summary
        assert seen.remedy.text.startswith("gpunode setup --only runtime")


def test_a_running_k0s_is_stopped_before_its_drop_in_is_written_for_the_next_one() -> None:
    seen = outcome("rt.drop-ins", k0s("1.36.1+k0s.0", "version = 2\n", active=True))
    assert isinstance(seen, Finding)
    assert seen.remedy.text.startswith("drain the node, systemctl stop k0sworker.service; then gpunode setup")
    assert isinstance(outcome("rt.drop-ins", k0s(None, "version = 2\n")), NotApplicable)


@pytest.mark.parametrize(
    ("flags", "there", "found"),
    [((), True, True), ((), False, False), (("--config-dir", "/etc/crio/conf.d"), True, False)],
    ids=["where CRI-O does not look", "absent", "where this CRI-O looks"],
)
def test_a_drop_in_that_crio_does_not_read_is_found(flags: tuple[str, ...], there: bool, found: bool) -> None:
    engine = RuntimeFacts("crio", "1.36.3", "/etc/crio/crio.conf", "crio.service", "", active=True, flags=flags)
    files = {MISPLACED: FileFacts(MISPLACED, "[crio]\n" if there else None)}
    assert isinstance(outcome("rt.drop-ins", h.host(runtimes=(engine,), files=files)), Finding) is found
