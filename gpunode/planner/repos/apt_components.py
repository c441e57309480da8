"""Debian keeps what drivers draw on outside `main`; the parts are added from the same mirror, under the same key."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode import resources
from gpunode.advice import listing
from gpunode.editing.diff import unified
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile
from gpunode.model.driver import DriverChoice
from gpunode.model.packages import AptArchive
from gpunode.model.plan import Step
from gpunode.planner.site import Site, through_proxy
from gpunode.regex import regex
from gpunode.remedy import AGAIN, Remedy, RepairAction

FILE = "gpunode-components.sources"
# NVIDIA's packages for Debian need no more than contrib (installation guide, Debian).
FOR_VENDOR = ("contrib",)
ALIASES = ("stable", "testing", "unstable")  # suites by role instead of by name
_WORD = regex(r"[A-Za-z0-9-]{1,40}", re.ASCII)


def components_step(site: Site, choice: DriverChoice) -> Step | None:
    """None where they are enabled, and where it is not known (a recording from before the probe looked)."""
    wanted = [c for c in site.distro.components if choice.source == "distro" or c in FOR_VENDOR]
    lacking = [(a, tuple(c for c in wanted if c not in _there(site, a))) for a in _mains(site)]
    lacking = [(archive, names) for archive, names in lacking if names]
    if not lacking:
        return None
    _refuse_what_is_not_repeated(site, lacking)
    text = resources.render("repo/components.sources.j2", entries=lacking)
    path = f"{site.backend.source_directory}/{FILE}"
    before = site.host.file(path)
    names = ", ".join(dict.fromkeys(name for _, names in lacking for name in names))
    return Step(
        "repo.components",
        f"enable {names} of {site.distro.name}'s archive",
        "packages that the driver draws on are there",
        (
            PutFile(path, text, expect_sha256=before.sha256, any_before=True),
            *site.backend.reads_lists,
            through_proxy(site.backend.refresh_all(), site.spec.proxy),
        ),
        diff=unified(path, before.text, text),
        serves=("driver",),
        changes_repositories=True,
    )


def _mains(site: Site) -> tuple[AptArchive, ...]:
    """Where this host takes `main` from, each address and suite once; nothing of anybody else's.

    An address with a password was masked by the probe, so it cannot be written down again.
    """
    archives = (a for a in site.host.packages.archives if "main" in a.components and "***@" not in a.uri)
    found = {(a.uri, a.suite): a for a in archives}
    suites = site.distro.codenames or ("",)
    return tuple(a for a in found.values() if a.suite.split("-")[0].split("/")[0] in (*suites, *ALIASES))


def _refuse_what_is_not_repeated(site: Site, entries: Sequence[tuple[AptArchive, tuple[str, ...]]]) -> None:
    """Raises UnsupportedHost: apt stops at an entry that is not as the host's own in all but its components."""
    for archive, names in entries:
        odd = [name for name, value in archive.options if not _WORD.fullmatch(value)]
        if archive.inline_key or odd:
            parts = " ".join(names)
            raise UnsupportedHost(
                f"{parts} of {archive.uri} {archive.suite} cannot be enabled beside the entry that is there",
                evidence=f"its {'Signed-By is a key in the entry itself' if archive.inline_key else listing(odd)}",
                remedy=Remedy(RepairAction.CONFIGURE, f"add {parts} to the Components of that entry, then run ", AGAIN),
            )


def _there(site: Site, archive: AptArchive) -> set[str]:
    same = [a for a in site.host.packages.archives if (a.uri, a.suite) == (archive.uri, archive.suite)]
    return {component for a in same for component in a.components}
