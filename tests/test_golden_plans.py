"""What a person sees for each recorded host: the plan, and why this driver and no other."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import collect
from gpunode.transport.recorded import Recorded
from tests.golden_text import EXAMPLES, GOLDEN, assert_golden
from tests.recorded.hosts import RECIPES

HOSTS = sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file())
OPTIONS = {recipe.slug: recipe.options for recipe in RECIPES}


@pytest.mark.parametrize("slug", HOSTS)
@pytest.mark.parametrize(("file", "more"), [("plan.txt", ()), ("explanation.txt", ("--explain",))], ids=["plan", "why"])
def test_what_is_said_of_a_recorded_host_is_the_golden_text(
    slug: str, file: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_golden(slug, file, ["plan"], [*OPTIONS.get(slug, ()), *more], monkeypatch, capsys)


def test_there_is_no_golden_plan_without_its_host() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == HOSTS


def test_recorded_hosts_cover_every_distribution_and_every_architecture() -> None:
    catalog = load_catalog()
    hosts = [collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug)) for slug in HOSTS]
    assert len(hosts) >= 40
    seen = {distro.name for host in hosts if (distro := catalog.distro(host.os))}
    assert {distro.name for distro in catalog.distros} - seen == set()
    models = {catalog.gpu_model(gpu.device).architecture for host in hosts for gpu in host.gpus}
    assert models == {architecture.name for architecture in (*catalog.architectures, *catalog.guesses)}
