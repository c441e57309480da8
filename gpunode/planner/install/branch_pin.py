"""What chooses a branch among those that the source provides, and how it is rolled back when an install fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode.model.action import WHATEVER, Run
from gpunode.model.branch_names import MODULE, stream, version_pattern
from gpunode.model.driver import DriverChoice
from gpunode.model.installed import PINNING
from gpunode.packages.base import Backend, Wanted
from gpunode.planner.driver.source import names_of
from gpunode.planner.site import Site


def pin(site: Site, choice: DriverChoice) -> list[Run]:
    """The commands that choose the branch, before anything of it is resolved."""
    select, backend = names_of(site, choice.source, choice.branch).select, site.backend
    if choice.source == "local":  # the policy names the version; what else such a directory holds is not known
        return []
    if select == "pinning":
        run = backend.with_config(backend.install([Wanted(f"{PINNING}-{choice.version or choice.branch}")]))
        return [replace(run, remedies=_which(backend, choice)) if choice.version else run]
    if select == "module":
        return list(backend.stream(MODULE, stream(choice.branch, choice.flavour)))
    if select == "versionlock":
        # EL 10 and Fedora have no module streams: a lock on a version pattern chooses the branch (installation guide).
        tools = [Wanted(name) for name in backend.hold_tools]
        lock = backend.hold([pattern(choice)])
        return [*([backend.install(tools)] if tools else []), lock]
    return []


def unpin(site: Site, choice: DriverChoice, before: str | None) -> list[Run]:
    """The rollback to the branch of `before`, the driver that is installed (None: there is none)."""
    select, backend = names_of(site, choice.source, choice.branch).select, site.backend
    runs: list[Run] = []
    if choice.source == "local":
        return runs
    if select == "versionlock":
        runs.append(backend.unhold([pattern(choice)]))
    if select == "pinning":
        new = f"{PINNING}-{choice.version or choice.branch}"
        old = sorted(name for name in site.host.packages.installed if name.startswith(PINNING))
        runs += [backend.with_config(backend.install([Wanted(name) for name in old]))] if old else []
        # With its configuration: that is the pin, and of two pins the higher version wins.
        runs += [backend.purge([new])] if new not in old else []
    if select == "module":
        runs += backend.stream(MODULE, _stream_before(site, before))
    return [replace(run, ok_codes=WHATEVER) for run in runs]


def _stream_before(site: Site, before: str | None) -> str | None:
    """The stream that was enabled, None: none was; where nobody looked, that of the driver that is installed."""
    path = site.backend.stream_file(MODULE)
    file = site.host.file(path)
    if file.text is not None:
        return site.backend.enabled_stream(file.text)
    if before is None or (path in site.host.files and file.unread is None):
        return None
    return stream(int(before[:3]), site.host.driver.installed_flavour or "open")


def pinned_again(site: Site, held: Sequence[str]) -> tuple[Run, ...]:
    """The rollback of a step that removes pins first: without them the next upgrade splits the set."""
    return (replace(site.backend.hold(held), ok_codes=WHATEVER),) if held else ()


def _which(backend: Backend, choice: DriverChoice) -> tuple[tuple[int, str], ...]:
    if backend.not_found is None:
        return ()
    lists = f"{backend.words('search', PINNING)} lists the versions there are"
    return ((backend.not_found, f"{lists}; --driver {choice.branch} takes the newest"),)


def pattern(choice: DriverChoice) -> str:
    """What a branch's packages look like to versionlock."""
    return version_pattern(str(choice.version or choice.branch))
