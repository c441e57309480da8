"""Nothing is said of a healthy host, of whatever kind: no failure and no warning, and most checks have a verdict.

Only `debian12-ready` was recorded; the others are constructed (tests/recorded/whole.py), with all sections of a probe.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.agreement import agreed
from gpunode.checks.causes import folded
from gpunode.checks.rules.judged import Judgement, ruled
from gpunode.cli.options.spec import texts_of_words
from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from gpunode.specfile import put_all
from tests.recorded.construct import stream
from tests.recorded.whole import WHOLE, healthy

READY = Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready" / "facts.txt"
TODAY = date(2026, 11, 24)  # the engines of these hosts get fixes then
HOSTS = {recipe.slug: stream(recipe) for recipe in (*WHOLE, *healthy())} | {"debian12-ready": READY.read_bytes()}
# How many checks pass at the least, and the profile. Without a GPU on the bus few have anything to look at.
LEAST = {
    "ubuntu2404-hgx-h100-ready": (125, "hgx"),
    "ubuntu2404-node-l40s-ready": (130, "kubernetes"),
    "docker-l4": (105, "docker"),
    "laptop": (100, "workstation"),
    "mig-a100": (110, "docker"),
    "ubuntu2404-podman-l4": (105, "docker"),
    "ubuntu2404-k3s-l4": (105, "kubernetes"),
    "ubuntu2404-wsl2": (12, "docker"),
    "image": (7, "image"),
    "debian12-ready": (85, "docker"),
}


def checked(host: HostFacts) -> CheckReport:
    """As `gpunode check` says it, with the profile that fits."""
    catalog = load_catalog()

    def plan(options: tuple[str, ...]) -> Plan:
        return make_plan(host, put_all(Spec(), texts_of_words(options)), catalog)

    found = agreed(run_all(host, Spec(), catalog, today=TODAY), plan)
    return folded(ruled(found, Judgement(), catalog, TODAY))


@pytest.mark.parametrize("name", HOSTS)
def test_nothing_is_said_of_a_healthy_host(name: str) -> None:
    report = checked(assemble(HOSTS[name], name))
    assert {id: finding.summary for id, finding in report.findings.items()} == {}
    least, profile = LEAST[name]
    assert report.profile is not None
    assert report.profile.name == profile
    assert report.passed >= least, "too little is known of it for its health to say anything"
    assert report.facts is not None
    assert {section: why for section, why in report.facts.unread.items() if "not understood" in why} == {}
