"""Small readings of text that several checks share. All are total: odd text gives None or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gpunode.advice import listing, typed
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.versions import DRIVER_VERSION
from gpunode.regex import regex

if TYPE_CHECKING:
    from gpunode.packages.base import Backend, Verb

_ANYWHERE = regex(rf"(?<![0-9])(?<![0-9]\.)({DRIVER_VERSION})")


def backend_of(host: HostFacts) -> Backend | None:
    from gpunode.packages.registry import BACKENDS

    return BACKENDS.get(host.packages.manager or "")


def typed_for(host: HostFacts, verb: Verb, *names: str) -> str:
    """The command to run on this host; the bare verb where gpunode does not know its package manager."""
    backend = backend_of(host)
    return backend.words(verb, *names) if backend else typed(verb, *names)


PRUNE = (
    "remove what is not needed: images (docker system prune, crictl rmi --prune), logs (journalctl --vacuum-size=1G)"
)
CHRONY = "systemctl enable --now chronyd, with chrony installed (on Debian and Ubuntu the unit is chrony)"


def chrony(host: HostFacts) -> str:
    """Debian's chrony.service has chronyd as an alias, and `systemctl enable` takes no alias."""
    unit = "chrony" if "debian" in (host.os.id, *host.os.id_like) else "chronyd"
    return f"systemctl enable --now {unit}, with chrony installed"


class Unpinning(NamedTuple):
    """What must come before an upgrade that a pin of an admin's prevents."""

    evidence: str  # "nvidia-open is pinned, and not by gpunode"
    command: str  # "apt-mark unhold nvidia-open"


def unpinning(host: HostFacts, names: Iterable[str]) -> Unpinning | None:
    """None where none of these packages is pinned by anybody but gpunode, which lifts its own pins."""
    from gpunode.packages import pins

    backend, held = backend_of(host), pins.pinned_by_others(host, names)
    if backend is None or not held:
        return None
    are = "is" if len(held) == 1 else "are"
    return Unpinning(f"{listing(held)} {are} pinned, and not by gpunode", pins.unpinning(backend, held))


def driver_version(text: str) -> str | None:
    """The driver version in `text`: of a package, a file name, a line."""
    found = _ANYWHERE.search(text)
    return found.group(1) if found else None


def branch(version: str) -> int | None:
    """595 for "595.91.07"; None for what is no driver version."""
    found = re.match(r"(\d{3})\.", version, re.ASCII)
    return int(found.group(1)) if found else None


def time_of_run(run: str) -> str:
    """ "2026-11-21 15:18 UTC" of "20261121T151820Z-6283.1"; the run's name where it is no time."""
    found = re.match(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)", run, re.ASCII)
    return "{}-{}-{} {}:{} UTC".format(*found.groups()) if found else f"run {run[:60]}"


def active_lines(text: str | None) -> tuple[tuple[int, str], ...]:
    """(line number, line) of a config file without blank lines and # comments."""
    stripped = ((n, line.strip()) for n, line in enumerate((text or "").splitlines(), 1))
    return tuple((n, line) for n, line in stripped if line and not line.startswith("#"))


def setting(file: FileFacts, name: str) -> str | None:
    """What the toolkit's config.toml sets at a dotted `name`; None where it does not, or does not parse."""
    from gpunode.engines import toolkit_config

    return toolkit_config.setting(file, name)


def bytes_of(number: int) -> str:
    """ "3.2 GiB", "512 MiB"."""
    unit = next((unit for unit in (40, 30, 20, 10) if number >= 1 << unit), 0)
    name = {40: "TiB", 30: "GiB", 20: "MiB", 10: "KiB", 0: "bytes"}[unit]
    return f"{number / (1 << unit):.3g} {name}" if unit else f"{number} {name}"


def duration(seconds: int) -> str:
    """ "5 h", "3 d": the largest unit that it has at least two of."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
