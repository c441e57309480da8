"""What CUDA programs of the host itself meet: a toolkit that is too new, variables that change what they do."""

from __future__ import annotations

import re

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.entities import place
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.model.versions import numbers
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, gpunode

NEWER = Remedy(
    RepairAction.UPGRADE,
    "upgrade the driver (",
    gpunode("plan"),
    " shows which); containers bring a CUDA of their own, and where data centre GPUs keep this driver, the "
    "package cuda-compat of the toolkit's version helps",
)
# NVIDIA's packages have the version in their names, those of Debian, Ubuntu and Arch as their version.
_NAMED = regex(r"cuda-(?:toolkit|runtime|libraries|cudart)-([0-9]{1,2})-[0-9]{1,2}", re.A)
_PLAIN = ("nvidia-cuda-toolkit", "cuda")


@check(
    "user.cuda-driver-api",
    Severity.WARNING,
    title="the driver can run what the CUDA toolkit of the host builds",
    reads="cuda_version in nvidia-smi -q -x; the package list",
    remedy=NEWER,
    needs=(needs.gpu, needs.host_driver, needs.smi_ran, needs.packages),
)
def cuda_driver_api(host: HostFacts, context: Context) -> CheckOutcome:
    """The newest CUDA toolkit of the host is of a later major version than the driver: what it builds does not start.

    A toolkit of the driver's major version fits, whatever its minor version (CUDA minor version compatibility).
    """
    smi = host.driver.smi
    able = numbers((smi.cuda_umd_version or smi.cuda_version or "") if smi else "")
    if not able:
        return NotApplicable("nvidia-smi does not say which CUDA the driver has")
    there = {name: major for name in host.packages.installed if (major := _major(host, name))}
    if not there:
        return NotApplicable("no package of a CUDA toolkit is installed")
    newest = max(there, key=lambda name: (there[name], name))
    bridged = any(name.startswith(f"cuda-compat-{there[newest]}-") for name in host.packages.installed)
    if there[newest] <= able[0] or bridged:
        return None
    return Finding(
        f"the CUDA toolkit is of version {there[newest]}, and the driver runs CUDA up to {able[0]}",
        evidence=f"package {newest} is installed; nvidia-smi -q -x, cuda_version: {'.'.join(map(str, able))}",
        remedy=NEWER,
    )


def _major(host: HostFacts, name: str) -> int | None:
    package = host.packages.installed[name]
    if not package.configured:
        return None
    found = _NAMED.fullmatch(name)
    if found:
        return int(found[1])
    version = numbers(package.version) if name in _PLAIN else ()
    return version[0] if version else None


@check(
    "user.cuda-toolkit-optional",
    Severity.WARNING,
    title="which CUDA toolkits the host itself has",
    reads="/usr/local/cuda-*/version.json; the package list",
    remedy=Remedy(RepairAction.NONE, "nothing: containers bring a CUDA of their own"),
    needs=(needs.gpu, needs.host_driver, needs.system),
)
def cuda_toolkit_optional(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """Informative: a node needs no CUDA toolkit of its own, and one that it has is named."""
    found = host.system.cuda if host.system else None
    if found is None:
        return NotApplicable("this recording does not have it")
    plain = [name for name in _PLAIN if name in host.packages.installed and host.packages.installed[name].configured]
    told = [f"{one.path}: CUDA {one.version or 'of unknown version'}, nvcc {one.nvcc or 'not in it'}" for one in found]
    told += [f"package {name} {host.packages.installed[name].version}" for name in plain]
    return Passed(listing(told, between="; ")) if told else None


@check(
    "user.bad-envs",
    Severity.WARNING,
    title="no variable for all logins or services changes what CUDA programs do",
    reads="/etc/environment, /etc/profile, /etc/profile.d/*.sh, /etc/systemd/system.conf and its drop-ins",
    remedy=Remedy(RepairAction.CONFIGURE, "take the variable out of the file that sets it"),
    needs=(needs.gpu, needs.host_driver, needs.system),
)
def bad_envs(host: HostFacts, context: Context) -> CheckOutcome:
    """A variable for debugging, or one that hides GPUs, is set for every login or service of the host."""
    found = host.system.variables if host.system else None
    if found is None:
        return NotApplicable("the files that set variables were not read")
    if not found:
        return None
    return Finding(
        f"{listing(dict.fromkeys(one.name for one in found))} is set for all programs of the host",
        evidence=listing((f"{one.path}:{one.line} sets {one.name}" for one in found), 4),
        remedy=Remedy(RepairAction.CONFIGURE, "take it out of the file, and set it for the one program that needs it"),
        entities=tuple(place(one.path, one.line) for one in found),
    )
