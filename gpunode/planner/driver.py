"""Which driver this set of cards gets: branch and flavour, with the reason a person can check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpunode.catalog.distros import Distro
from gpunode.catalog.gpus import Card
from gpunode.catalog.load import Branch, Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.spec import DriverRequest, Flavour


@dataclass(frozen=True)
class DriverChoice:
    branch: int
    version: str | None  # exact version asked for; None: the newest point release of the branch
    flavour: str  # "open" | "proprietary"
    why: tuple[str, ...]
    alternatives: tuple[str, ...] = ()  # "580 LTS, until 2028-06, with --driver 580"
    expires: str | None = None  # month in which the branch's support ends
    source: str = "cuda"  # "cuda" | "distro"
    packages: tuple[str, ...] = ()  # what is installed, most telling first
    kept: bool = False  # it is on the host already and stays


@dataclass(frozen=True)
class Bounds:
    """What all cards of the box can share."""

    flavours: frozenset[str]
    first: int
    last: int | None  # None: no end in sight


def choose_driver(
    request: DriverRequest,
    flavour: Flavour,
    cards: Sequence[Card],
    catalog: Catalog,
    offered: Sequence[int] | None = None,
) -> DriverChoice:
    """The driver for one box. `offered`: branches that the package source carries; None: all that the catalog knows.

    Raises UnsupportedHost when no driver serves all cards, or the request does not fit them.
    """
    bounds = shared_bounds(cards, catalog)
    branch = _branch(request, bounds, cards, catalog, offered)
    chosen = _flavour(flavour, branch, bounds, cards, catalog)
    return DriverChoice(
        branch=branch.number,
        version=request.exact,
        flavour=chosen,
        why=(f"{describe(cards, catalog)}; {support(branch)}",),
        alternatives=_alternatives(branch, bounds, catalog, offered) if request.kind == "auto" else (),
        expires=branch.end,
    )


def shared_bounds(cards: Sequence[Card], catalog: Catalog) -> Bounds:
    """Flavours and branches that drive every card at once; raises UnsupportedHost when there are none."""
    for card in cards:
        architecture = catalog.architecture(card.architecture)
        if architecture.refused:
            raise UnsupportedHost(
                f"{card.name} ({architecture.title}) is too old: {architecture.refused}",
                evidence=f"its last driver branch is {architecture.last_branch}; catalog/architectures.yaml",
                remedy="take the card out, or install that driver by hand and use gpunode setup --driver none",
            )
    only = {_only(card, catalog): card for card in cards}
    if "open" in only and "proprietary" in only:
        new, old = only["open"], only["proprietary"]
        raise UnsupportedHost(
            f"{old.name} and {new.name} cannot share one driver",
            evidence=f"{new.name} runs with open kernel modules only, {old.name} with proprietary ones only; "
            "a kernel loads one nvidia module",
            remedy="put the cards in different machines, or give one of them to a virtual machine with vfio-pci",
        )
    flavours = {"open", "proprietary"} - ({"proprietary"} if "open" in only else set())
    flavours -= {"open"} if "proprietary" in only else set()
    architectures = [catalog.architecture(card.architecture) for card in cards]
    ends = [a.last_branch for a in architectures if a.last_branch is not None]
    return Bounds(frozenset(flavours), max((a.first_branch for a in architectures), default=0), min(ends, default=None))


def describe(cards: Sequence[Card], catalog: Catalog) -> str:
    """ "8 × Hopper run either flavour" """
    counts = Counter((catalog.architecture(c.architecture).title, _only(c, catalog)) for c in cards)
    words = {"open": "open modules only", "proprietary": "proprietary modules only", "either": "either flavour"}
    return ", ".join(f"{n} × {title} run{'' if n > 1 else 's'} {words[only]}" for (title, only), n in counts.items())


def support(branch: Branch) -> str:
    if branch.status == "supported":
        until = f" until {branch.end}" if branch.end else ", its end is not known"
        return f"{branch.number} is {'the' if branch.kind in ('production', 'lts') else 'a'} {branch.title}{until}"
    ended = f" since {branch.end}" if branch.end else ""
    return f"{branch.number} is a {branch.title} without support{ended}"


def _only(card: Card, catalog: Catalog) -> str:
    return card.flavour or catalog.architecture(card.architecture).flavour


def _branch(
    request: DriverRequest, bounds: Bounds, cards: Sequence[Card], catalog: Catalog, offered: Sequence[int] | None
) -> Branch:
    number = _auto(bounds, catalog, offered) if request.branch is None else request.branch
    branch = catalog.branch(number)
    if branch is None or (offered is not None and number not in offered):
        known = offered if offered is not None else [b.number for b in catalog.branches if b.status != "dead"]
        raise UnsupportedHost(
            f"driver branch {number} is not offered for this host",
            evidence=f"offered are {', '.join(map(str, sorted(known)))}",
            remedy="choose one of those with --driver, or --driver auto",
        )
    if not _within(number, bounds):
        limit = (
            f"up to branch {bounds.last}" if bounds.last and number > bounds.last else f"from branch {bounds.first} on"
        )
        raise UnsupportedHost(
            f"driver branch {number} does not drive all cards of this host",
            evidence=f"{describe(cards, catalog)}, {limit}",
            remedy="--driver auto chooses one that does",
        )
    return branch


def _auto(bounds: Bounds, catalog: Catalog, offered: Sequence[int] | None) -> int:
    preferred = catalog.default("current" if bounds.last is None else "legacy").branch
    if offered is None or preferred in offered:
        return preferred
    fitting = [number for number in offered if _within(number, bounds)]
    if not fitting:
        raise UnsupportedHost(
            "this package source has no driver for the cards of this host",
            evidence=f"it offers {', '.join(map(str, sorted(offered))) or 'none'}; the cards need {bounds.first}"
            + (f" to {bounds.last}" if bounds.last else " or newer"),
            remedy="--driver-source cuda takes NVIDIA's own repository",
        )
    return max(fitting)


def _within(number: int, bounds: Bounds) -> bool:
    return bounds.first <= number and (bounds.last is None or number <= bounds.last)


def _flavour(want: Flavour, branch: Branch, bounds: Bounds, cards: Sequence[Card], catalog: Catalog) -> str:
    flavours = (
        set(bounds.flavours) - ({"proprietary"} if branch.open_only else set()) - (set() if branch.open else {"open"})
    )
    if want is Flavour.AUTO and flavours:
        return "open" if "open" in flavours else "proprietary"
    if want.value in flavours:
        return want.value
    wanted = "any" if want is Flavour.AUTO else want.value
    packaged = (
        "open modules only" if branch.open_only else "both flavours" if branch.open else "proprietary modules only"
    )
    raise UnsupportedHost(
        f"branch {branch.number} with {wanted} kernel modules does not fit this host",
        evidence=f"{describe(cards, catalog)}; branch {branch.number} is packaged with {packaged}",
        remedy=f"use --flavour {min(flavours)}" if flavours else "--driver auto chooses a branch that fits",
    )


def _alternatives(chosen: Branch, bounds: Bounds, catalog: Catalog, offered: Sequence[int] | None) -> tuple[str, ...]:
    return tuple(
        f"{b.number} LTS, until {b.end}, with --driver {b.number}"
        for b in catalog.branches
        if b.kind == "lts" and b.status == "supported" and b.number != chosen.number and _within(b.number, bounds)
        if offered is None or b.number in offered
    )


def offered_branches(distro: Distro, source: str, catalog: Catalog) -> tuple[int, ...]:
    """Branches that this distribution gets from `source` ("cuda" | "distro")."""
    if source == "distro":
        return distro.archive.branches if distro.archive else ()
    return tuple(b.number for b in catalog.branches if b.number >= distro.cuda.first)
