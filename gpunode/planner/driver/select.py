"""Which driver this set of GPUs gets: branch and flavour, with reasons that can be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpunode.catalog.gpus import UNKNOWN_OLDER, Architecture, GpuModel
from gpunode.catalog.load import Branch, Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.driver import DriverChoice, ModuleFlavour
from gpunode.model.spec import DriverRequest, Flavour
from gpunode.planner.driver.available import BOTH, Offer, everything
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.values import dataclass


@dataclass(frozen=True)
class Bounds:
    """What all GPUs of the box can share."""

    flavours: frozenset[ModuleFlavour]
    first: int
    last: int | None  # None: no end in sight

    def drive(self, branch: int) -> bool:
        return self.first <= branch and (self.last is None or branch <= self.last)


def choose_driver(
    request: DriverRequest, flavour: Flavour, models: Sequence[GpuModel], catalog: Catalog, offer: Offer | None = None
) -> DriverChoice:
    """The driver for one box, from what the package source offers (None: all that the catalog knows).

    Raises UnsupportedHost when no driver serves all GPUs, or the request does not fit them.
    """
    offer = offer or everything(catalog)
    bounds = shared_bounds(models, catalog, request.branch, guesses=request.branch is None)
    branch = _asked(request, bounds, models, catalog, offer) or _auto(flavour, bounds, catalog, offer)
    chosen = _flavour(flavour, branch, bounds, models, catalog, offer)
    return DriverChoice(
        branch=branch.number,
        version=request.exact,
        flavour=chosen,
        reasons=(describe(models, catalog, guesses=request.branch is None), support(branch)),
        branch_kind=branch.kind,
        branch_status=branch.status,
        end_of_support=branch.end,
        rolling=offer.rolling,
    )


def shared_bounds(
    models: Sequence[GpuModel], catalog: Catalog, asked: int | None = None, *, guesses: bool = True
) -> Bounds:
    """Flavours and branches that drive every GPU at once; raises UnsupportedHost when there are none.

    `asked`: the branch that was named, or that is installed; an architecture whose branch ended is then welcome.
    `guesses` False: of GPUs that the catalog does not know it counts only that those older than Turing have no open
    modules.
    """
    for model in models:
        _refuse_old(model, catalog, asked)
    sure = [model for model in models if guesses or not catalog.guessed(model)]
    only = {catalog.flavour(model): model for model in models if model in sure or model.architecture == UNKNOWN_OLDER}
    if "open" in only and "proprietary" in only:
        raise _not_together(only["open"], only["proprietary"], catalog)
    flavours = BOTH - ({"proprietary"} if "open" in only else set()) - ({"open"} if "proprietary" in only else set())
    ends = [end for end in map(catalog.last_branch, sure) if end is not None]
    return Bounds(flavours, max(map(catalog.first_branch, sure), default=0), min(ends, default=None))


def _not_together(new: GpuModel, old: GpuModel, catalog: Catalog) -> UnsupportedHost:
    guessed = catalog.guessed(new) or catalog.guessed(old)
    named = "; where the catalog does not know a GPU, --driver BRANCH takes the branch that you know it needs"
    verb, other = runs(new, catalog), f" {runs(old, catalog)}" if guessed else ""
    return UnsupportedHost(
        f"{old.name} and {new.name} cannot share one driver",
        evidence=f"{new.name} {verb} with open kernel modules only, {old.name}{other} with proprietary ones only; "
        "a kernel loads one nvidia module",
        remedy="put the GPUs in different machines, or bind one of them to vfio-pci (passthrough)"
        + (named if guessed else ""),
    )


def runs(model: GpuModel, catalog: Catalog) -> str:
    return "is taken to run" if catalog.guessed(model) else "runs"


def _refuse_old(model: GpuModel, catalog: Catalog, asked: int | None) -> None:
    architecture: Architecture = catalog.architecture(model.architecture)
    last = catalog.last_branch(model)
    if architecture.refused is None or (asked is not None and asked == architecture.opt_in and asked <= (last or 999)):
        return
    if architecture.guess:
        if asked is None:
            raise _unknown(model, architecture)
        return
    willing = architecture.opt_in is not None and architecture.opt_in <= (last or 999)
    raise UnsupportedHost(
        f"{model.name} ({architecture.title}) is too old: {architecture.refused}",
        evidence=f"its last driver branch is {last}; catalog/architectures.yaml",
        remedy=Remedy(
            RepairAction.REPLACE,
            "take the GPU out, or ",
            *(
                (f"ask for its ended branch all the same with --driver {architecture.opt_in}",)
                if willing
                else ("install that driver manually and use ", setup("--only", "toolkit,runtime"))
            ),
        ),
    )


def _unknown(model: GpuModel, guess: Architecture) -> UnsupportedHost:
    return UnsupportedHost(
        f"{model.name}: {guess.refused}",
        evidence="neither this id nor its block is in the catalog (catalog/gpus.yaml, architectures.yaml); it is lower "
        "than Turing's ids, so this is probably an older GPU",
        remedy=Remedy(
            RepairAction.UPGRADE,
            "look up the GPU's driver branch at nvidia.com/drivers and name it, as in --driver 580, or leave the "
            "driver out: ",
            setup("--only", "toolkit,runtime"),
        ),
    )


def describe(models: Sequence[GpuModel], catalog: Catalog, *, guesses: bool = True) -> str:
    """ "8 × Hopper run either flavour"; `guesses` False: what is guessed of GPUs that no one knows decided nothing."""
    known = [model for model in models if not catalog.guessed(model)]
    counts = Counter((catalog.architecture(c.architecture).title, catalog.flavour(c)) for c in known)
    words = {"open": "open modules only", "proprietary": "proprietary modules only", "either": "either flavour"}
    said = [f"{n} × {title} run{'' if n > 1 else 's'} {words[only]}" for (title, only), n in counts.items()]
    unknown = Counter((c.name, catalog.flavour(c)) for c in models if catalog.guessed(c))
    taken = {only: f" is taken to run {words[only]}" if guesses else "" for only in words}
    said += [f"{n} × {name} (not in the catalog){taken[only]}" for (name, only), n in unknown.items()]
    return ", ".join(said) or "no GPU decides"


def support(branch: Branch) -> str:
    if branch.status == "supported":
        until = f" until {branch.end}" if branch.end else ", its end is not known"
        return f"{branch.number} is {'the' if branch.kind in ('production', 'lts') else 'a'} {branch.title}{until}"
    ended = f" since {branch.end}" if branch.end else ""
    article = "an" if branch.title.startswith("LTS") else "a"
    return f"{branch.number} is {article} {branch.title} without support{ended}"


def _asked(
    request: DriverRequest, bounds: Bounds, models: Sequence[GpuModel], catalog: Catalog, offer: Offer
) -> Branch | None:
    """The branch that the request names, proven to be offered and to fit; None for auto."""
    number = request.branch
    if number is None:
        return None
    if offer.rolling:
        raise UnsupportedHost(
            f"driver branch {number} cannot be asked for on this host",
            evidence=f"{offer.name} provides its newest driver only",
            remedy="use --driver auto",
        )
    branch = catalog.branch(number)
    if number in offer.transitional:
        now = offer.transitional[number]
        raise UnsupportedHost(
            f"driver branch {number} is not offered for this host any more: its packages install {now}",
            evidence=f"the packages of {number} in {offer.name} are transitional and depend on those of {now}",
            remedy=f"--driver {now} asks for what they install",
        )
    if branch is None or number not in offer:
        raise UnsupportedHost(
            f"driver branch {number} is not offered for this host",
            evidence=f"{offer.name} provides {offer.words}",
            remedy="choose one of those with --driver, or --driver auto",
        )
    if not bounds.drive(number):
        over = bounds.last is not None and number > bounds.last
        limit = f"up to branch {bounds.last}" if over else f"from branch {bounds.first} on"
        raise UnsupportedHost(
            f"driver branch {number} does not drive all GPUs of this host",
            evidence=f"{describe(models, catalog)}, {limit}",
            remedy="--driver auto chooses one that does",
        )
    return branch


def _auto(flavour: Flavour, bounds: Bounds, catalog: Catalog, offer: Offer) -> Branch:
    """The default where it is offered; else the best that fits: production, then LTS, then what is supported at all."""
    fitting = [
        b
        for b in catalog.branches
        if b.number in offer and bounds.drive(b.number) and b.kind != "legacy" and flavours_of(b, bounds, offer)
    ]
    preferred = catalog.default("current" if bounds.last is None else "legacy").branch
    if not fitting:
        raise _nothing_fits(bounds, catalog, offer)
    wanted = [b for b in fitting if flavour is Flavour.AUTO or flavour.value in flavours_of(b, bounds, offer)]
    rank = {"production": 2, "lts": 1}
    return max(
        wanted or fitting,
        key=lambda b: (b.number == preferred, b.status == "supported", rank.get(b.kind, 0), b.number),
    )


def _nothing_fits(bounds: Bounds, catalog: Catalog, offer: Offer) -> UnsupportedHost:
    needs = f"{bounds.first}" + (f" to {bounds.last}" if bounds.last else " or newer")
    kinds = " and ".join(sorted(set().union(*offer.flavours.values()))) or "no"
    wanted = " or ".join(sorted(bounds.flavours))
    legacy = [b.number for b in catalog.branches if bounds.drive(b.number) and flavours_of(b, bounds, offer)]
    manually = f"install {'branch ' + str(bounds.last) if bounds.last else 'a newer driver'} manually"
    remedy = Remedy(
        RepairAction.UPGRADE,
        f"use a system whose source has one, or {manually} and run ",
        setup("--only", "toolkit,runtime"),
    )
    if legacy:
        ended = f"--driver {max(legacy)} takes the ended branch all the same; a newer release of the system has more"
        remedy = Remedy(RepairAction.UPGRADE, ended)
    return UnsupportedHost(
        "this package source has no current driver for the GPUs of this host",
        evidence=f"{offer.name} provides {offer.words} with {kinds} modules; the GPUs need {needs} with {wanted} ones",
        remedy=remedy,
    )


def flavours_of(branch: Branch, bounds: Bounds, offer: Offer) -> frozenset[ModuleFlavour]:
    """What the GPUs, NVIDIA and the package source agree on."""
    gone = ({"proprietary"} if branch.open_only else set()) | (set() if branch.open else {"open"})
    return bounds.flavours & offer.flavours.get(branch.number, frozenset()) - gone


def _flavour(
    want: Flavour, branch: Branch, bounds: Bounds, models: Sequence[GpuModel], catalog: Catalog, offer: Offer
) -> ModuleFlavour:
    flavours = flavours_of(branch, bounds, offer)
    if want is Flavour.AUTO and flavours:
        return "open" if "open" in flavours else "proprietary"
    if want.value in flavours:
        return "open" if want is Flavour.OPEN else "proprietary"
    fitting = [b for b in catalog.branches if bounds.drive(b.number) and flavours_of(b, bounds, offer)]
    if not fitting:
        raise _nothing_fits(bounds, catalog, offer)
    wanted = "" if want is Flavour.AUTO else f" with {want.value} kernel modules"
    raise UnsupportedHost(
        f"branch {branch.number}{wanted} does not fit this host",
        evidence="; ".join(_against(want, branch, bounds, models, catalog, offer)),
        remedy=f"use --flavour {min(flavours)}" if flavours else "--driver auto chooses a branch that fits",
    )


def _against(
    want: Flavour, branch: Branch, bounds: Bounds, models: Sequence[GpuModel], catalog: Catalog, offer: Offer
) -> list[str]:
    """What speaks against this flavour: the GPUs, NVIDIA's packaging, the source; all three where any would do."""
    provided = offer.flavours.get(branch.number, frozenset())
    packaged = BOTH - ({"proprietary"} if branch.open_only else set()) - (set() if branch.open else {"open"})
    said = (
        (bounds.flavours, describe(models, catalog)),
        (packaged, f"branch {branch.number} is packaged with {' and '.join(sorted(packaged))} modules only"),
        (provided, f"{offer.name} has it with {' and '.join(sorted(provided)) or 'no'} modules only"),
    )
    return [words for flavours, words in said if want.value not in flavours and flavours != BOTH]
