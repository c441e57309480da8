"""Checks that need the same are judged together, and what a fleet lacks is not held without end."""

from __future__ import annotations

from collections.abc import Callable

from gpunode.catalog.load import load_catalog
from gpunode.checks.registry import Check, CheckDoc, Context, SameNeeds
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts
from gpunode.model.report import CheckResult, Finding, NotApplicable, Severity
from gpunode.model.spec import KubernetesMode, KubernetesSpec, Spec
from gpunode.remedy import Remedy, RepairAction

HOST = HostFacts("gpu07", "gpu07", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=True)
REMEDY = Remedy(RepairAction.NONE, "look")
Need = Callable[[HostFacts], str | None]


def two(*needs: Need, mode: KubernetesMode | None = None) -> SameNeeds:
    def check(id: str, found: Finding | None) -> Check:
        doc = CheckDoc(id, Severity.ERROR, "title", "broken", "reads", REMEDY)
        return Check(doc, needs, lambda host, context: found, mode)

    return SameNeeds([check("x.bad", Finding("bad", "seen", REMEDY)), check("x.good", None)])


def judged(same: SameNeeds, mode: KubernetesMode | None = None) -> dict[str, CheckResult]:
    spec = Spec(kubernetes=KubernetesSpec(mode=mode)) if mode else None
    return dict(same.run(HOST, Context(spec, load_catalog()), lambda need: need(HOST)))


def test_a_host_that_has_what_they_need_gets_the_verdict_of_each() -> None:
    found = judged(two(lambda host: None))
    assert isinstance(found["x.bad"].outcome, Finding)
    assert found["x.good"].outcome is None


def test_one_that_lacks_it_has_the_first_reason_for_all_and_no_later_need_is_asked() -> None:
    def never(host: HostFacts) -> str:
        raise AssertionError("asked although the first need gave a reason")

    found = judged(two(lambda host: "no GPU", never))
    assert {one.outcome for one in found.values()} == {NotApplicable("no GPU")}
    assert list(found) == ["x.bad", "x.good"]


def test_what_is_of_another_way_to_give_gpus_out_needs_nothing() -> None:
    def never(host: HostFacts) -> str:
        raise AssertionError("asked although the spec wants another way")

    outcome = judged(two(never, mode="dra"), "device-plugin")["x.bad"].outcome
    assert isinstance(outcome, NotApplicable)
    assert "kubernetes.mode of the spec is device-plugin" in outcome.reason


def test_hosts_that_lack_the_same_share_what_is_said() -> None:
    same = two(lambda host: "no GPU")
    assert judged(same)["x.bad"] is judged(same)["x.bad"]


def test_reasons_with_a_hosts_own_words_are_not_held_without_end() -> None:
    words = iter(range(1000))
    same = two(lambda host: f"file {next(words)} is in the way")
    for number in range(1000):
        assert judged(same)["x.bad"].outcome == NotApplicable(f"file {number} is in the way")
    assert len(same._lacking) <= 64
