"""Why this driver and no other: the reasons, what was looked at and left, when the choice expires, how sure we are."""

from __future__ import annotations

from gpunode.catalog.load import Branch
from gpunode.model.spec import DriverSource, Flavour
from gpunode.planner.driver.available import Offer
from gpunode.planner.driver.select import Bounds, DriverChoice, flavours_of, shared_bounds
from gpunode.planner.driver.source import source_title
from gpunode.planner.site import Site

LABEL = 9


def explanation(site: Site, choice: DriverChoice) -> tuple[str, ...]:
    """Lines "Label    text"; a line that begins with blanks goes on under the label above it."""
    found = [*_listed("Because", _reasons(site, choice)), *_listed("Instead", choice.rejected)]
    found += _listed("Expires", (_expiry(site, choice),))
    return (*found, *_listed("Facts", _facts(site, choice)))


def rejected(site: Site, choice: DriverChoice, source: str, offer: Offer) -> tuple[str, ...]:
    """Other branches, the other flavour and the other source, each with the reason why it was left."""
    bounds = shared_bounds(site.cards, site.catalog, choice.branch)
    near = [b for b in site.catalog.branches if b.number != choice.branch and _worth_a_word(b, choice)]
    reasons: dict[str, list[str]] = {}
    for b in near:
        reasons.setdefault(_why_not(b, choice, bounds, offer), []).append(f"{b.number} ({b.title})")
    lines = [f"{', '.join(branches)}: {reason}" for reason, branches in reasons.items()]
    flavour = _other_flavour(site, choice, bounds, offer)
    return (*lines, *([flavour] if flavour else []), *_other_source(site, source))


def _worth_a_word(branch: Branch, choice: DriverChoice) -> bool:
    return not choice.rolling and (branch.status == "supported" or branch.number > choice.branch)


def _why_not(branch: Branch, choice: DriverChoice, bounds: Bounds, offer: Offer) -> str:
    if bounds.last is not None and branch.number > bounds.last:
        return f"too new for a card of this host, whose last branch is {bounds.last}"
    if branch.number < bounds.first:
        return f"too old for a card of this host, whose first branch is {bounds.first}"
    if offer.rolling:
        return f"{offer.name} carries its newest only"
    if branch.number not in offer:
        return f"not in {offer.name}"
    if not flavours_of(branch, bounds, offer):
        return "no modules of a flavour that these cards run"
    if branch.status != "supported":
        return f"without support since {branch.end}" if branch.end else "without support"
    if branch.end is None:
        return f"nobody published how long it is supported; --driver {branch.number} takes it"
    return f"supported until {branch.end}; --driver {branch.number} takes it"


def _other_flavour(site: Site, choice: DriverChoice, bounds: Bounds, offer: Offer) -> str | None:
    other = "proprietary" if choice.flavour == "open" else "open"
    branch = site.catalog.branch(choice.branch)
    if other not in bounds.flavours:
        who = next(c for c in site.cards if site.catalog.flavour(c) == choice.flavour) if site.cards else None
        return f"{other} modules: {who.name if who else 'the card'} runs {choice.flavour} ones only"
    if branch is not None and other not in flavours_of(branch, bounds, offer):
        return f"{other} modules: {offer.name} has none for branch {choice.branch}"
    if site.spec.flavour is not Flavour.AUTO:
        return f"{other} modules: --flavour {site.spec.flavour.value} was asked for"
    return f"{other} modules: open ones are NVIDIA's default since 560 and the only ones from 615; --flavour {other}"


def _other_source(site: Site, source: str) -> tuple[str, ...]:
    if source == "local" or site.spec.driver_source is not DriverSource.AUTO:
        return ()
    other = "cuda" if source == "distro" else "distro"
    if site.distro.packages(other) is None:
        return ()
    title = source_title(site, other)
    if other == "cuda":
        return (
            (f"{title}: its modules are built here and would need a key enrolled at the console",)
            if (site.host.security.secure_boot)
            else (f"{title}: --driver-source cuda",)
        )
    return (f"{title}: a host has one source, and NVIDIA's has every branch; --driver-source distro",)


def _reasons(site: Site, choice: DriverChoice) -> tuple[str, ...]:
    reasons = [part for why in choice.why for part in why.split("; ")]
    if not choice.kept:
        reasons.append(f"it comes from {source_title(site, choice.source)}")
        reasons += ["its module comes built and signed: nothing to build, nothing to enrol"] if choice.signed else []
    if choice.foreign:
        reasons.append(f"it is left alone: {choice.foreign}")
    return tuple(reasons)


def _expiry(site: Site, choice: DriverChoice) -> str:
    branch = site.catalog.branch(choice.branch)
    if choice.rolling:
        newest = "every upgrade of the system brings the archive's newest"
        return f"never by itself: {'with --no-hold ' if site.spec.hold else ''}{newest}"
    if branch is None or branch.end is None:
        return "nobody published when; gpunode catalog branches shows what is known"
    if branch.status != "supported":
        return f"it has: branch {choice.branch} ended in {branch.end}"
    return f"{branch.end}, when support of branch {choice.branch} ends; gpunode catalog branches shows what follows"


def _facts(site: Site, choice: DriverChoice) -> tuple[str, ...]:
    """How sure the catalog is of the rows that decided."""
    branch = site.catalog.branch(choice.branch)
    rows = [(site.distro.name, site.distro.grade, site.distro.checked)]
    rows += [(f"branch {branch.number}", branch.grade, branch.checked)] if branch and not choice.rolling else []
    names = dict.fromkeys(card.architecture for card in site.cards)
    rows += [(a.title, a.grade, a.checked) for a in map(site.catalog.architecture, names)]
    words = {"high": "from a named source", "medium": "derived", "memory": "from memory, unchecked"}
    return tuple(f"{name}: {words[grade]}, {checked}" for name, grade, checked in rows)


def _listed(label: str, lines: tuple[str, ...]) -> list[str]:
    return [f"{label if n == 0 else '':<{LABEL}}{line}" for n, line in enumerate(lines)]
