"""What a lock has beside versions of the driver and the toolkit: packages, firmware of the GPUs, CDI of the engines."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.advice import listing
from gpunode.checks.expect import seen
from gpunode.checks.expect.words import differs, expected, unsaid, unset
from gpunode.checks.health.seen import about
from gpunode.checks.registry import Context, check
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

_SAID = 64  # packages that the evidence names
_PACKAGES = Remedy(
    RepairAction.UPGRADE, "install the expected versions (setup --lock FILE); else correct expect.packages"
)
_VBIOS = Remedy(
    RepairAction.SUPPORT,
    "ask the machine's vendor for the expected VBIOS; else correct expect.vbios",
)
_CDI = Remedy(RepairAction.CONFIGURE, "set the engine as expected (setup --cdi enables it); else correct expect.cdi")


@check(
    "expect.packages",
    Severity.ERROR,
    title="the expected packages are installed, in the expected versions",
    reads="the package manager's database against expect.packages",
    remedy=_PACKAGES,
)
def packages(host: HostFacts, context: Context) -> CheckOutcome:
    """An expected package is not installed, or is of another version. Further packages are nothing to it."""
    want, found = expected(context).packages, seen.packages(host)
    if want is None:
        return unset("packages")
    if isinstance(found, NotApplicable):
        return unsaid(host, "packages", "packages", want, found)
    there = {name: one.version for name, one in host.packages.installed.items() if one.configured}
    wanted = dict(word.rsplit("=", 1) for word in want)
    wrong = [name for name, version in wanted.items() if there.get(name) != version]
    if not wrong:
        return None
    said = [f"{name}: wanted {wanted[name]}, found {there.get(name, 'none')}" for name in wrong]
    return Finding(
        f"packages: {len(wrong)} of {len(wanted)} are not there in the expected version: {listing(wrong, 4)}",
        evidence=f"{host.packages.manager}'s database against expect.packages: {listing(said, _SAID)}",
        remedy=_PACKAGES,
    )


@check(
    "expect.vbios",
    Severity.ERROR,
    title="the GPUs have the expected VBIOS",
    reads="vbios_version in nvidia-smi -q -x, against expect.vbios",
    remedy=_VBIOS,
)
def vbios(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has another VBIOS than the one that is expected of its model. Nothing is expected of other models."""
    want, found = expected(context).vbios, seen.vbios(host)
    if want is None:
        return unset("vbios")
    if isinstance(found, NotApplicable):
        return unsaid(host, "VBIOS", "vbios", want, found)
    models = {word.partition("=")[0] for word in want}
    odd = [word for word in found if word.partition("=")[0] in models and word not in want]
    if not odd:
        return None
    named = {word.partition("=")[0] for word in odd}
    smi, device = host.driver.smi, {gpu.address: gpu.device for gpu in host.gpus}
    assert smi is not None, "a version was found"
    wrong = [gpu for gpu in smi.gpus if f"{device.get(gpu.pci_address)}={gpu.health.board.vbios}" in odd]
    wanted = [word for word in want if word.partition("=")[0] in named]
    return differs("VBIOS", "vbios", wanted, odd, reads="nvidia-smi -q -x", remedy=_VBIOS, about=about(wrong))


@check(
    "expect.cdi",
    Severity.ERROR,
    title="CDI is enabled in the engines where it is expected, and in no other",
    reads="the running daemons against expect.cdi",
    remedy=_CDI,
)
def cdi(host: HostFacts, context: Context) -> CheckOutcome:
    """A container engine has CDI enabled and is expected to have it disabled, or the other way round."""
    want = expected(context).cdi
    if want is None:
        return unset("cdi")
    daemons = {one.label: one for one in seen.with_handlers(host)}
    wanted = _by_engine(want, daemons)
    wrong = [name for name, on in wanted.items() if name not in daemons or daemons[name].cdi is (not on)]
    if wrong:
        return differs(
            "CDI",
            "cdi",
            [f"{name}={_word(wanted[name])}" for name in wrong],
            [f"{name}={_word(not wanted[name])}" if name in daemons else f"no {name}" for name in wrong],
            reads="the running daemon",
            remedy=_CDI,
            about=unit(*(daemons[name].unit for name in wrong if name in daemons)),
        )
    mute = [name for name in wanted if daemons[name].cdi is None]
    if not mute and wanted:
        return None
    why = f"{mute[0]} did not say whether CDI is enabled" if mute else "no container engine runs that has handlers"
    return unsaid(host, "CDI", "cdi", want, NotApplicable(why), unit(*(daemons[name].unit for name in mute)))


def _by_engine(want: Iterable[str], daemons: Iterable[str]) -> dict[str, bool]:
    """Label -> whether CDI is expected; a word without an engine is for all that none names."""
    named = {name: on == "on" for name, equals, on in (word.rpartition("=") for word in want) if equals}
    for_all = [word == "on" for word in want if "=" not in word]
    return {**{name: for_all[0] for name in daemons if for_all}, **named}


def _word(on: bool) -> str:
    return "on" if on else "off"
