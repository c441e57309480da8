"""--where KEY=VALUE: hosts by their facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import TransportError, UsageError
from gpunode.facts.collect import assemble, collect
from gpunode.facts.probe_script import probe_script
from gpunode.facts.recordings import load_recording
from gpunode.fleet.inventory.facts import FACTS
from gpunode.fleet.inventory.where import Condition, FactFilter, parse_where
from gpunode.transport.base import Completed
from gpunode.transport.kept_answer import KeptAnswer

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"


def why(host: str, text: str, unread: Mapping[str, str] | None = None) -> str:
    facts = assemble(load_recording(EXAMPLES / host), host)
    return Condition.parse(text).against(replace(facts, unread={**facts.unread, **(unread or {})}))


@pytest.mark.parametrize(
    ("host", "text", "left_out"),
    [
        ("ubuntu2604-b200", "gpu.arch=blackwell", ""),
        ("ubuntu2604-b200", "gpu.arch=Hopper", "gpu.arch is blackwell"),
        ("debian12-p100-h100", "gpu.arch=pascal", ""),
        ("debian12-p100-h100", "gpu.arch=hopper", ""),
        ("debian12-no-gpu", "gpu.arch=hopper", "gpu.arch is none"),
        ("debian12-no-gpu", "gpu.arch=none", ""),
        ("debian12-l4", "gpu.arch=none", "gpu.arch is ada"),
        ("ubuntu2604-b200", "gpu.model=b200", ""),
        ("ubuntu2404-gb200", "gpu.model=B200", "gpu.model is gb200"),
        ("ubuntu2404-hgx-h100", "gpu.model=H100 SXM5", ""),
        ("ubuntu2404-hgx-h100", "gpu.model=2330", ""),
        ("ubuntu2404-node-l40s", "gpu.model=L40", "gpu.model is l40s"),
        ("ubuntu2404-hgx-h100", "gpu.count=8", ""),
        ("ubuntu2404-hgx-h100", "gpu.count=4", "gpu.count is 8"),
        ("rocky9-l40s", "os.id=rocky", ""),
        ("rocky9-l40s", "os.id=rhel", "os.id is rocky"),
        ("rocky9-l40s", "os.like=rhel", ""),
        ("rocky9-l40s", "os.version=9", ""),
        ("rocky10-b200", "os.version=1", "os.version is 10"),
        ("ubuntu2404-hgx-h100", "os.version=24.04", ""),
        ("ubuntu2404-hgx-h100", "os.version=24.0", "os.version is 24.04"),
        ("arch-rtx5090", "os.version=9", "os.version is none"),
        ("rhel9-64k-gh200", "os.machine=aarch64", ""),
        ("debian12-ready", "driver.branch=595", ""),
        ("debian12-l4", "driver.branch=none", ""),
        ("debian12-l4", "driver.branch=580", "driver.branch is none"),
        ("debian12-ready", "driver.module-type=proprietary", "driver.module-type is open"),
        ("debian12-ready", "engine=docker", ""),
        ("debian12-ready", "engine=crio", "engine is "),
    ],
)
def test_a_host_is_kept_or_left_out_by_what_it_has(host: str, text: str, left_out: str) -> None:
    said = why(host, text)
    assert said.startswith(left_out)
    assert bool(said) == bool(left_out)


@pytest.mark.parametrize("text", ["gpu.arch=hopper", "gpu.arch=none", "gpu.model=2330", "gpu.count=8", "gpu.count=0"])
def test_what_is_not_known_matches_nothing(text: str) -> None:
    key = text.partition("=")[0]
    assert why("ubuntu2404-hgx-h100", text, {"pci": "it was truncated"}) == f"{key} is not known"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["gpu.arhc=ada"], "did you mean gpu.arch? the keys are gpu.arch, gpu.model"),
        (["gpu.arch"], "has no value"),
        (["gpu.arch="], "is no value of that fact"),
        (["gpu.arch=blackwel"], "did you mean blackwell?"),
        (["gpu.count=many"], "it is how many GPUs it has: a number"),
        (["driver.branch=580.65"], "580 or none"),
        (["gpu.model=\x1b[2J"], "is no value of that fact"),
        (["gpu.arch=ada or gpu.arch=hopper"], "is no value of that fact"),
        (["os.id=ubuntu", "os.id=debian"], "os.id is both ubuntu and debian"),
    ],
)
def test_faults(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_where(texts)
    assert said in f"{caught.value.problem}; {caught.value.evidence}"


def test_repeated_means_and() -> None:
    one, other = parse_where(["os.like=rhel", "os.version=9", "os.version=9"])
    assert (one.key, other.key) == ("os.like", "os.version")


def test_the_docs_have_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "fleet.md").read_text(encoding="utf-8")
    assert [key for key, fact in FACTS.items() if f"| `{key}` | {fact.about}" not in page] == []


# ---- a host is asked once


class Counting:
    """A host that counts what it is asked."""

    target = "gpu01"

    def __init__(self, *, fails: int = 0) -> None:
        self.asked: list[str] = []
        self._fails = fails

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.asked.append("probe" if script == probe_script() else script)
        if len(self.asked) <= self._fails:
            raise TransportError("gpu01: no answer")
        return Completed(0, load_recording(EXAMPLES / "debian12-l4") if script == probe_script() else b"", b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def filtered(host: Counting, text: str = "gpu.arch=ada") -> tuple[FactFilter, KeptAnswer]:
    kept = KeptAnswer(host)
    return FactFilter(parse_where([text]), kept), kept


def test_the_verb_gets_the_answer_that_the_filter_got() -> None:
    only, kept = filtered(host := Counting())
    assert only.left_out() == ""
    assert collect(kept).gpus
    assert only.left_out() == ""
    assert host.asked == ["probe"]
    collect(kept)
    assert host.asked == ["probe", "probe"], "kept for one question, and no longer"


def test_another_script_ends_what_is_kept() -> None:
    only, kept = filtered(host := Counting())
    only.left_out()
    kept.run("wait", timeout_s=1)
    collect(kept)
    assert host.asked == ["probe", "wait", "probe"], "it may have changed the host"


@pytest.mark.parametrize("end", ["reconnect", "close"])
def test_a_new_connection_ends_what_is_kept(end: str) -> None:
    only, kept = filtered(host := Counting())
    only.left_out()
    getattr(kept, end)()
    collect(kept)
    assert host.asked == ["probe", "probe"]


def test_a_host_that_did_not_answer_is_asked_again() -> None:
    only, _ = filtered(Counting(fails=1), "gpu.arch=hopper")
    with pytest.raises(TransportError):
        only.left_out()
    assert only.left_out() == "gpu.arch is ada"
