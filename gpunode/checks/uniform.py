"""Which hosts of one run have other versions than those with the same GPU (fleet.version-uniform)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpunode.advice import listing
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.values import dataclass

LONGEST = 80  # characters of one version; hosts write them
BY_SETUP = ("driver", "toolkit")
BY_HAND = {"kernel": "the kernel by the package manager and a reboot", "VBIOS": "the VBIOS by the machine's vendor"}
ENGINES = "engines by the package manager"


@dataclass(frozen=True)
class _Row:
    """One thing that has a version, on all hosts that have it."""

    what: str  # "driver", "VBIOS of 699-21010-0200-500"
    hosts: Mapping[str, tuple[int, ...]]  # version -> the hosts' places, what most have first
    most: str | None  # the version that more hosts have than any other; None: there is none

    @property
    def count(self) -> int:
        return sum(map(len, self.hosts.values()))


class Compared(NamedTuple):
    """What of a host is held against other hosts."""

    target: str
    models: frozenset[str]  # PCI ids of its GPUs
    gpus: str  # what they are called
    versions: Mapping[str, str]

    @staticmethod
    def of(host: HostFacts) -> Compared:
        return Compared(host.target, frozenset(gpu.device for gpu in host.gpus), _called(host), versions(host))


def compared(hosts: Sequence[Compared]) -> tuple[CheckOutcome | Passed, ...]:
    """The verdict for each host, in their order."""
    groups: dict[frozenset[str], list[int]] = {}
    for place, host in enumerate(hosts):
        groups.setdefault(host.models, []).append(place)
    verdicts: dict[int, CheckOutcome | Passed] = {}
    for models, places in groups.items():
        if not models:
            verdicts |= dict.fromkeys(places, NotApplicable("no NVIDIA GPU on the PCI bus (pci.gpu-present)"))
        elif len(places) == 1:
            verdicts[places[0]] = NotApplicable(f"no other host of this run has {hosts[places[0]].gpus}")
        else:
            verdicts |= _group(hosts, places)
    return tuple(verdicts[place] for place in range(len(hosts)))


def versions(host: HostFacts) -> dict[str, str]:
    """What has a version here; a user's own daemon does not count, nor what is not known."""
    found = {
        "driver": host.driver.loaded or host.driver.installed,
        "toolkit": host.toolkit.version,
        "kernel": host.kernel.release,
        **{engine.label: engine.version for engine in host.runtimes if not engine.user},
    }
    found |= {f"VBIOS of {board}": " and ".join(sorted(seen)) for board, seen in sorted(_boards(host).items())}
    return {what[:LONGEST]: version[:LONGEST] for what, version in found.items() if version}


def _boards(host: HostFacts) -> dict[str, set[str]]:
    """Board -> its VBIOS versions; by its part number, or else by its subsystem on the PCI bus."""
    subsystems = {gpu.address: f"board {gpu.subsystem}" for gpu in host.gpus if gpu.subsystem}
    boards: dict[str, set[str]] = {}
    for gpu in host.driver.smi.gpus if host.driver.smi else ():
        board = gpu.health.board
        if (name := board.part or subsystems.get(gpu.pci_address)) and board.vbios:
            boards.setdefault(name, set()).add(board.vbios)
    return boards


def _called(host: HostFacts) -> str:
    named = {gpu.name for gpu in (host.driver.smi.gpus if host.driver.smi else ()) if gpu.name}
    return f"this GPU ({listing(sorted(named or {gpu.device for gpu in host.gpus}))})"


def _group(hosts: Sequence[Compared], places: Sequence[int]) -> dict[int, CheckOutcome | Passed]:
    found = {place: hosts[place].versions for place in places}
    names = {place: hosts[place].target for place in places}
    rows = [
        row for what in dict.fromkeys(w for one in found.values() for w in one) if (row := _row(what, found)).count > 1
    ]
    return {place: _verdict(found[place], rows, names) for place in places}


def _row(what: str, found: Mapping[int, Mapping[str, str]]) -> _Row:
    hosts: dict[str, list[int]] = {}
    for place, versions in found.items():
        if what in versions:
            hosts.setdefault(versions[what], []).append(place)
    ranked = sorted(hosts.items(), key=lambda one: -len(one[1]))
    alone = len(ranked) == 1 or len(ranked[0][1]) > len(ranked[1][1])
    return _Row(what, {version: tuple(there) for version, there in ranked}, ranked[0][0] if alone else None)


def _verdict(mine: Mapping[str, str], rows: Sequence[_Row], names: Mapping[int, str]) -> CheckOutcome | Passed:
    here = [row for row in rows if row.what in mine]
    if not here:
        return NotApplicable("no version of this host is known that one of another host could be compared with")
    odd = [row for row in here if row.most != mine[row.what]]
    if not odd:
        alike = listing((f"{row.what} {mine[row.what]} ({len(row.hosts[mine[row.what]])} hosts)" for row in here), 8)
        return Passed(f"as most hosts with this GPU: {alike}")
    return Finding(
        listing((_differs(row, mine[row.what]) for row in odd), 3, between="; "),
        evidence=listing((_all(row, names) for row in odd), 6, between="; "),
        remedy=_remedy([row.what for row in odd]),
    )


def _differs(row: _Row, mine: str) -> str:
    if row.most is None:
        return f"{row.what} differs among {row.count} hosts with the same GPU: {listing(sorted(row.hosts))}"
    return f"{row.what} {mine}, where {len(row.hosts[row.most])} of {row.count} hosts with the same GPU have {row.most}"


def _all(row: _Row, names: Mapping[int, str]) -> str:
    """ "driver: 595.91.07 on gpu01, gpu02; 580.95.05 on gpu03"."""
    there = (f"{version} on {listing(names[place] for place in places)}" for version, places in row.hosts.items())
    return f"{row.what}: {listing(there, between=' / ')}"


def _remedy(odd: Sequence[str]) -> Remedy:
    """Who brings what differs to one version."""
    parts = [what for what in BY_SETUP if what in odd]
    others = dict.fromkeys(BY_HAND.get(what.partition(" ")[0], ENGINES) for what in odd if what not in BY_SETUP)
    then = listing(others, between=", ")
    if not parts:
        return Remedy(RepairAction.UPGRADE, f"install one version on all of them: {then}")
    by_setup = setup("--only", ",".join(parts))
    more = f"; {then}" if then else ""
    return Remedy(RepairAction.UPGRADE, "upgrade the hosts that differ: ", by_setup, f" with one spec for all{more}")
