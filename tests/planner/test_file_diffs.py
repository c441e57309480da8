"""What -v shows of the files that a plan writes, and of the keys that it trusts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.facts.collect import collect
from gpunode.model.action import PutFile
from gpunode.model.files import FileFacts
from gpunode.model.plan import Step
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from gpunode.planner.summary import with_diff
from gpunode.render.plan_text import plan_text
from gpunode.render.style import Style
from gpunode.transport.recorded import Recorded
from tests.planner.builders import H100, T4, host, packages

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
CATALOG = load_catalog()
PREF = "/etc/apt/preferences.d/x.pref"


def steps_of(slug: str) -> tuple[Step, ...]:
    """() for a host that is refused."""
    try:
        recorded = Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug)
        return make_plan(collect(recorded), Spec(), CATALOG).steps
    except UnsupportedHost:
        return ()


def test_each_file_that_a_plan_writes_is_named_in_its_steps_diff() -> None:
    named, unnamed = 0, []
    for slug in sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file()):
        for step in steps_of(slug):
            for put in (action for action in step.actions if isinstance(action, PutFile)):
                if f"+++ {put.path}" in step.diff.splitlines():
                    named += 1
                else:
                    unnamed.append(f"{slug}: {step.id}: {put.path}")
    assert unnamed == []
    assert named > 300


@pytest.mark.parametrize("managers", [True, False], ids=["a file of the package manager", "another file"])
def test_a_diff_is_against_what_the_host_has(managers: bool) -> None:
    there = FileFacts(PREF, "Pin: old\n", "0" * 64)
    facts = host(T4, packages=packages({}, sources=(there,))) if managers else host(T4, files={PREF: there})
    step = with_diff(facts, Step("x", "", "", (PutFile(PREF, "Pin: new\n"),)))
    assert step.diff.splitlines() == [f"--- {PREF}", f"+++ {PREF}", "@@ -1 +1 @@", "-Pin: old", "+Pin: new"]


def test_verbose_plans_say_the_whole_fingerprint_that_a_key_is_held_to() -> None:
    lines = plan_text(make_plan(host(H100), Spec(), CATALOG), Style(width=10_000, verbose=1)).splitlines()
    keys = [line for line in lines if "does: fetch" in line]
    assert len(keys) == 2
    assert CATALOG.toolkit.fingerprint in keys[1]
    assert all(re.search(r"check it by fingerprint \([0-9A-F]{40}\), write /", key) for key in keys)
