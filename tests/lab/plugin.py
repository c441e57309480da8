"""pytest's side of the lab. A conftest says `from tests.lab.plugin import *`; a test takes `lab` or `gpunode_site`.

Without a lab such tests are skipped, loudly; GPUNODE_LAB_REQUIRED=1 makes that the run's failure. Cases that are marked
as wide are left out, which is said, unless GPUNODE_LAB_WIDE=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .lab import Lab, why_not
from .site import ROOT, site_path

__all__ = [
    "gpunode_site",
    "lab",
    "lab_session",
    "pytest_collection_modifyitems",
    "pytest_report_header",
    "pytest_terminal_summary",
]
SAID = pytest.StashKey[set[str]]()


def pytest_report_header(config: pytest.Config) -> str | None:
    if not _is_first(config, "header"):
        return None
    reason = why_not()
    if reason:
        return f"LAB DID NOT RUN: {reason}"
    return "lab: ready" if _wide() else "lab: ready; wide cases are left out (GPUNODE_LAB_WIDE=1 runs them)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _wide() and (wide := [item for item in items if item.get_closest_marker("wide")]):
        config.hook.pytest_deselected(items=wide)
        items[:] = [item for item in items if item not in wide]
    reason = why_not()
    if reason is None:
        return
    needing = [item for item in items if "lab" in getattr(item, "fixturenames", ())]
    if needing and os.environ.get("GPUNODE_LAB_REQUIRED") == "1":
        pytest.exit(f"LAB DID NOT RUN: {reason}", 3)
    for item in needing:
        item.add_marker(pytest.mark.skip(reason=f"LAB DID NOT RUN: {reason}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reason = why_not()
    if reason and _is_first(config, "summary"):
        terminalreporter.section("LAB DID NOT RUN", sep="!", red=True)
        terminalreporter.line(reason)


def _wide() -> bool:
    return os.environ.get("GPUNODE_LAB_WIDE") == "1"


def _is_first(config: pytest.Config, place: str) -> bool:
    """Two conftests may import these hooks; each thing is said once."""
    said = config.stash.setdefault(SAID, set())
    first = place not in said
    said.add(place)
    return first


class _Shared:
    """One lab per process, however many conftests define the fixture."""

    lab: Lab | None = None
    users = 0


@pytest.fixture(scope="session")
def lab_session() -> Iterator[Lab]:
    """The bridge, its internet and the repositories; hosts are `lab`'s."""
    _Shared.lab = _Shared.lab or Lab()
    _Shared.users += 1
    yield _Shared.lab
    _Shared.users -= 1
    if not _Shared.users:
        _Shared.lab.close()
        _Shared.lab = None


@pytest.fixture
def lab(lab_session: Lab) -> Iterator[Lab]:
    """A lab without hosts and faults; hosts a test makes are gone after it."""
    yield lab_session
    lab_session.reset()


@pytest.fixture(scope="session")
def gpunode_site() -> Path:
    """Dependencies for Host.install_gpunode; run.sh has built them while there was a network."""
    site = site_path(ROOT / "pyproject.toml")
    if not site.exists():
        pytest.fail("no dependencies for local runs: run python -m tests.lab.site outside the lab's network namespace")
    return site
