"""Why this driver and no other: what was looked at and left, and how sure we are of what decided."""

from __future__ import annotations

from dataclasses import replace

from gpunode.catalog.load import Branch
from gpunode.model.driver import Alternative, Confidence, DriverChoice, DriverOrigin, ModuleFlavour
from gpunode.model.spec import DriverSource, Flavour
from gpunode.planner.driver.available import Offer
from gpunode.planner.driver.select import Bounds, flavours_of, runs, shared_bounds
from gpunode.planner.driver.source import source_title
from gpunode.planner.site import Site


def explained(site: Site, choice: DriverChoice) -> DriverChoice:
    """The choice with what a reader wants to know of it; nothing that a step is made of changes."""
    branch = site.catalog.branch(choice.branch)
    title = "" if choice.source == "none" else source_title(site, choice.source)
    return replace(
        choice,
        newest_known=branch.installable if branch and not choice.rolling else None,
        source_title=title,
        confidence=_confidence(site, choice, branch),
    )


def alternatives(site: Site, choice: DriverChoice, source: DriverOrigin, offer: Offer) -> tuple[Alternative, ...]:
    """Other branches, the other flavour and the other source, each with the reason why it was left."""
    # Another branch is one that would be asked for, and that counts more than a guess; another flavour alone does not.
    bounds = shared_bounds(site.gpu_models, site.catalog, choice.branch, guesses=False)
    guessed = shared_bounds(site.gpu_models, site.catalog, choice.branch, guesses=site.spec.driver.branch is None)
    near = [b for b in site.catalog.branches if b.number != choice.branch and _worth_a_word(b, choice)]
    branches = [_other_branch(b, bounds, offer) for b in near]
    return (*branches, _other_flavour(site, choice, guessed, offer), *_other_source(site, source))


def _worth_a_word(branch: Branch, choice: DriverChoice) -> bool:
    return not choice.rolling and (branch.status == "supported" or branch.number > choice.branch)


def _other_branch(branch: Branch, bounds: Bounds, offer: Offer) -> Alternative:
    against = _against(branch, bounds, offer)
    known = f"supported until {branch.end}" if branch.end else "end of support not published"
    return Alternative(
        branch.title,
        reason=against or known,
        option="" if against else f"--driver {branch.number}",
        branch=branch.number,
        branch_kind=branch.kind,
        end_of_support=branch.end,
    )


def _against(branch: Branch, bounds: Bounds, offer: Offer) -> str | None:
    """Why the branch cannot be had, or should not; None where nothing speaks against it."""
    if bounds.last is not None and branch.number > bounds.last:
        return f"too new for a GPU of this host, whose last branch is {bounds.last}"
    if branch.number < bounds.first:
        return f"too old for a GPU of this host, whose first branch is {bounds.first}"
    if offer.rolling:
        return f"{offer.name} provides its newest only"
    if branch.number not in offer:
        return f"not in {offer.name}"
    if not flavours_of(branch, bounds, offer):
        return "no modules of a flavour that these GPUs run"
    if branch.status != "supported":
        return f"without support since {branch.end}" if branch.end else "without support"
    return None


def _other_flavour(site: Site, choice: DriverChoice, bounds: Bounds, offer: Offer) -> Alternative:
    other: ModuleFlavour = "proprietary" if choice.flavour == "open" else "open"
    branch = site.catalog.branch(choice.branch)
    option = ""
    if other not in bounds.flavours:
        who = next(c for c in site.gpu_models if site.catalog.flavour(c) == choice.flavour) if site.gpu_models else None
        reason = f"{f'{who.name} {runs(who, site.catalog)}' if who else 'the model runs'} {choice.flavour} ones only"
    elif branch is not None and other not in flavours_of(branch, bounds, offer):
        reason = f"{offer.name} has none for branch {choice.branch}"
    elif site.spec.flavour is not Flavour.AUTO:
        reason = f"--flavour {site.spec.flavour.value} was asked for"
    else:
        reason = "open ones are NVIDIA's default since 560 and the only ones from 615"
        option = f"--flavour {other}"
    return Alternative(f"{other} modules", reason, option, flavour=other)


def _other_source(site: Site, source: DriverOrigin) -> tuple[Alternative, ...]:
    if source == "local" or site.spec.driver_source is not DriverSource.AUTO:
        return ()
    other: DriverOrigin = "cuda" if source == "distro" else "distro"
    if site.distro.packages(other) is None:
        return ()
    reason, option = "a host has one source, and NVIDIA's has every branch", f"--driver-source {other}"
    if other == "cuda":
        built = "its modules are built here and would need a key enrolled at the console"
        reason, option = (built, "") if site.host.security.secure_boot else ("", option)
    return (Alternative(source_title(site, other), reason, option, source=other),)


def _confidence(site: Site, choice: DriverChoice, branch: Branch | None) -> tuple[Confidence, ...]:
    """How sure the catalog is of the rows that decided."""
    rows = [Confidence(site.distro.name, site.distro.grade, site.distro.checked)]
    if branch and not choice.rolling:
        rows.append(Confidence(f"branch {branch.number}", branch.grade, branch.checked))
    names = dict.fromkeys(model.architecture for model in site.gpu_models)
    return (*rows, *(Confidence(a.title, a.grade, a.checked) for a in map(site.catalog.architecture, names)))
