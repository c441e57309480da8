"""The software that was expected: driver, CUDA, toolkit, engines and their handlers, release and kernel."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.checks.expect import seen
from gpunode.checks.expect.words import differs, expected, unsaid, unset
from gpunode.checks.registry import Context, check
from gpunode.model.entities import Entity, unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.report import CheckOutcome, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction


def _upgrade(what: str, key: str) -> Remedy:
    return Remedy(RepairAction.UPGRADE, f"install the expected {what}; else correct expect.{key}")


def _configure(key: str) -> Remedy:
    return Remedy(RepairAction.CONFIGURE, f"set the engine as expected; else correct expect.{key}")


def _equal(
    host: HostFacts, what: str, key: str, want: str | None, found: seen.Seen, reads: str, remedy: Remedy
) -> CheckOutcome:
    if want is None:
        return unset(key)
    if isinstance(found, NotApplicable):
        return unsaid(host, what, key, want, found)
    if found == (want,):
        return None
    return differs(what, key, want, found, reads=reads, remedy=remedy)


@check(
    "expect.driver",
    Severity.ERROR,
    title="the driver is of the expected branch or version",
    reads="/sys/module/nvidia/version, else modinfo, against expect.driver",
    remedy=_upgrade("driver", "driver"),
)
def driver(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver is of another branch or version than the expected one, or there is none."""
    want, found = expected(context).driver, seen.driver(host)
    # "580" is a branch: any of its versions will do.
    if want and len(want) == 3 and isinstance(found, tuple) and found[:1] and found[0].startswith(f"{want}."):
        return None
    reads = "/sys/module/nvidia/version" if host.driver.loaded else "modinfo"
    return _equal(host, "driver", "driver", want, found, reads, _upgrade("driver", "driver"))


@check(
    "expect.flavour",
    Severity.ERROR,
    title="the kernel modules are of the expected flavour",
    reads="/proc/driver/nvidia/version, else modinfo, against expect.flavour",
    remedy=_upgrade("kernel modules", "flavour"),
)
def flavour(host: HostFacts, context: Context) -> CheckOutcome:
    """The open kernel modules are expected and the proprietary ones are there, or the other way round."""
    reads = "/proc/driver/nvidia/version" if host.driver.loaded else "modinfo -F license"
    remedy = _upgrade("kernel modules", "flavour")
    return _equal(host, "kernel modules", "flavour", expected(context).flavour, seen.flavour(host), reads, remedy)


@check(
    "expect.cuda",
    Severity.ERROR,
    title="the driver runs the expected CUDA",
    reads="cuda_version in nvidia-smi -q -x, against expect.cuda",
    remedy=_upgrade("driver, which has the CUDA", "cuda"),
)
def cuda(host: HostFacts, context: Context) -> CheckOutcome:
    """The newest CUDA that the driver runs is another one than expected, or an older one."""
    want, found = expected(context).cuda, seen.cuda(host)
    if want and want.endswith("+") and isinstance(found, tuple) and _numbers(found[0]) >= _numbers(want[:-1]):
        return None
    return _equal(host, "CUDA", "cuda", want, found, "nvidia-smi -q -x", _upgrade("driver, which has the CUDA", "cuda"))


def _numbers(version: str) -> tuple[int, ...]:
    """(12, 8); () for what is no version, which is older than any."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts) else ()


@check(
    "expect.toolkit",
    Severity.ERROR,
    title="the NVIDIA Container Toolkit is of the expected version",
    reads="nvidia-ctk --version against expect.toolkit",
    remedy=_upgrade("toolkit", "toolkit"),
)
def toolkit(host: HostFacts, context: Context) -> CheckOutcome:
    """The container toolkit is of another version than the expected one, or there is none."""
    remedy = _upgrade("toolkit", "toolkit")
    return _equal(
        host, "toolkit", "toolkit", expected(context).toolkit, seen.toolkit(host), "nvidia-ctk --version", remedy
    )


@check(
    "expect.engines",
    Severity.ERROR,
    title="the expected container engines run, in the expected versions",
    reads="the running daemons against expect.engines",
    remedy=_upgrade("engine, and start it", "engines"),
)
def engines(host: HostFacts, context: Context) -> CheckOutcome:
    """An expected container engine does not run, or is of another version."""
    want, found = expected(context).engines, seen.engines(host)
    if want is None:
        return unset("engines")
    assert isinstance(found, tuple)
    there = {*found, *(pair.partition("=")[0] for pair in found)}
    missing = {word.partition("=")[0] for word in want if word not in there}
    if not missing:
        return None
    about = unit(*(one.unit for one in host.runtimes if one.label in missing))
    unknown = [one.label for one in seen.running(host) if one.label in missing and one.version is None]
    if unknown and len(unknown) == len(missing):
        return unsaid(host, "engines", "engines", want, NotApplicable(f"{unknown[0]} did not say its version"), about)
    remedy = _upgrade("engine, and start it", "engines")
    return differs("engines", "engines", want, found, reads="running", remedy=remedy, about=about)


@check(
    "expect.handler",
    Severity.ERROR,
    title="every container engine has the expected handler",
    reads="the running daemons against expect.handler",
    remedy=_configure("handler"),
)
def handler(host: HostFacts, context: Context) -> CheckOutcome:
    """A container engine does not have the expected handler."""
    want = expected(context).handler
    if want is None:
        return unset("handler")
    lacking = [one for one in seen.with_handlers(host) if one.handlers and want not in one.handlers]
    if not lacking:
        why = seen.silent(host)
        return unsaid(host, "handler", "handler", want, why, _units(seen.mute(host))) if why else None
    found = [f"{one.label}: {', '.join(one.handlers[:8])}" for one in lacking]
    return differs(
        "handler",
        "handler",
        want,
        found,
        reads="the running daemon",
        remedy=_configure("handler"),
        about=_units(lacking),
    )


@check(
    "expect.default-runtime",
    Severity.ERROR,
    title="the engines have the expected default runtime",
    reads="the running daemons against expect.default_runtime",
    remedy=_configure("default_runtime"),
)
def default_runtime(host: HostFacts, context: Context) -> CheckOutcome:
    """A container engine starts containers with another runtime than the expected one."""
    want = expected(context).default_runtime
    if want is None:
        return unset("default_runtime")
    by_engine = dict(word.split("=") for word in want if "=" in word)
    for_all = [word for word in want if "=" not in word]
    daemons = {one.label: one for one in seen.with_handlers(host)}
    absent = sorted(set(by_engine) - set(daemons))
    wrong = [
        one
        for label, one in daemons.items()
        if one.effective_default is not None
        and (wanted := [by_engine[label]] if label in by_engine else for_all)
        and one.effective_default not in wanted
    ]
    if not absent and not wrong:
        found = seen.default_runtimes(host)
        if not isinstance(found, NotApplicable):
            return None
        return unsaid(host, "default runtime", "default_runtime", want, found, _units(seen.mute(host)))
    said = [f"{one.label}={one.effective_default}" for one in wrong] + [f"no {label}" for label in absent]
    remedy = _configure("default_runtime")
    return differs(
        "default runtime",
        "default_runtime",
        want,
        said,
        reads="the running daemon",
        remedy=remedy,
        about=_units(wrong),
    )


def _units(engines: Iterable[RuntimeFacts]) -> tuple[Entity, ...]:
    return unit(*(one.unit for one in engines))


@check(
    "expect.os",
    Severity.ERROR,
    title="the host runs the expected release",
    reads="ID and VERSION_ID of os-release, against expect.os",
    remedy=_upgrade("release", "os"),
)
def os(host: HostFacts, context: Context) -> CheckOutcome:
    """The host runs another distribution or release than the expected one."""
    want, found = expected(context).os, seen.os(host)
    if want == host.os.id:  # every release of it
        return None
    return _equal(host, "release", "os", want, found, "os-release", _upgrade("release", "os"))


@check(
    "expect.kernel",
    Severity.ERROR,
    title="the expected kernel runs",
    reads="uname -r against expect.kernel",
    remedy=Remedy(RepairAction.UPGRADE, "install the expected kernel and boot it; else correct expect.kernel"),
)
def kernel(host: HostFacts, context: Context) -> CheckOutcome:
    """Another kernel runs than the expected one."""
    remedy = Remedy(RepairAction.UPGRADE, "install the expected kernel and boot it; else correct expect.kernel")
    return _equal(host, "kernel", "kernel", expected(context).kernel, seen.kernel(host), "uname -r", remedy)
