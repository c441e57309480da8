"""What a person sees for each recorded host: the plan, and why this driver and no other.

GPUNODE_UPDATE_GOLDEN=1 rewrites; the reviewer reads the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.cli.app import main
from gpunode.facts.collect import collect
from gpunode.transport.recorded import Recorded
from tests.recorded.hosts import RECIPES

EXAMPLES = Path(__file__).parent.parent / "examples" / "hosts"
GOLDEN = Path(__file__).parent / "golden"
HOSTS = sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file())
OPTIONS = {recipe.slug: recipe.options for recipe in RECIPES}


@pytest.mark.parametrize("slug", HOSTS)
@pytest.mark.parametrize(("file", "more"), [("plan.txt", ()), ("explanation.txt", ("--explain",))], ids=["plan", "why"])
def test_what_is_said_of_a_recorded_host_is_the_golden_text(
    slug: str, file: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parent.parent)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    argv = ["plan", "--recorded", f"examples/hosts/{slug}", *OPTIONS.get(slug, ()), *more]
    code = main(argv)
    shown = capsys.readouterr()
    text = f"$ gpunode {' '.join(argv)}\n{shown.out}{shown.err}exit {code}\n"
    golden = GOLDEN / slug / file
    if os.environ.get("GPUNODE_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


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
