"""Debian keeps what drivers draw on outside `main`; the parts are added from the same mirror, under the same key."""

from __future__ import annotations

from gpunode import resources
from gpunode.editing.diff import unified
from gpunode.model.action import PutFile
from gpunode.model.driver import DriverChoice
from gpunode.model.packages import AptArchive
from gpunode.model.plan import Step
from gpunode.planner.site import Site, through_proxy

FILE = "gpunode-components.sources"
# NVIDIA's packages for Debian need no more than contrib (installation guide, Debian).
FOR_VENDOR = ("contrib",)
ALIASES = ("stable", "testing", "unstable")  # suites by role instead of by name


def components_step(site: Site, choice: DriverChoice) -> Step | None:
    """None where they are enabled, and where it is not known (a recording from before the probe looked)."""
    wanted = [c for c in site.distro.components if choice.source == "distro" or c in FOR_VENDOR]
    lacking = [(a, tuple(c for c in wanted if c not in _there(site, a))) for a in _mains(site)]
    lacking = [(archive, names) for archive, names in lacking if names]
    if not lacking:
        return None
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


def _there(site: Site, archive: AptArchive) -> set[str]:
    same = [a for a in site.host.packages.archives if (a.uri, a.suite) == (archive.uri, archive.suite)]
    return {component for a in same for component in a.components}
