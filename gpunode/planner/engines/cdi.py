"""CDI specifications: made by nvidia-ctk or by its nvidia-cdi-refresh unit, one for each GPU, of today's driver."""

from __future__ import annotations

import re

from gpunode.catalog import cdi_versions
from gpunode.editing.diff import unified
from gpunode.model.action import Action, PutFile, RemoveFile, Run
from gpunode.model.cdi_devices import KIND, difference, kind_of, names
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import (
    CDI_READABLE_STEP,
    CDI_REFRESH_STEP,
    CDI_SPEC_STEP,
    CDI_STALE_STEP,
    Kept,
    Step,
)
from gpunode.model.spec import Spec
from gpunode.planner.engines import refresh_env
from gpunode.remedy import Remedy, RepairAction

Outcome = Step | Kept
Stale = dict[str, str]  # path of a specification -> what is wrong with it: "of another driver"
# Where the toolkit's documentation puts one that lasts; /var/run/cdi is nvidia-cdi-refresh's, and gone after a reboot.
LASTING, DIRECTORY = "/etc/cdi/nvidia.yaml", "/etc/cdi"
UNITS = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
LISTED = (
    f"nvidia-ctk cdi list 2>/dev/null | grep '^{KIND}=' || {{ echo 'no {KIND} in nvidia-ctk cdi list' >&2; exit 1; }}\n"
)


def cdi_outcomes(host: HostFacts, spec: Spec, *, pending: bool) -> tuple[Outcome, ...]:
    """What the CDI specifications need. `pending`: this plan changes driver or toolkit, and the next pass probes again.

    They are made where CDI is asked for (--cdi, or mode cdi of the toolkit). One of another driver is corrected
    wherever it is found: it mounts libraries that are gone, so no container starts with it. So is one of other GPUs or
    MIG instances, which nvidia-cdi-refresh does not follow, and one that an engine here cannot read: the unit is told
    to write none.
    """
    asked, ours = wanted(spec), "toolkit" in spec.only and spec.toolkit.kind != "none"
    behind = cdi_versions.behind(host, cdi=spec.runtime.cdi) if asked or ours else ()
    stale = _stale(host, behind) if ours else {}
    told = () if pending else _told(host, behind)
    if not asked and not stale:
        return told
    if reason := _not_now(host, pending=pending):
        return (*told, Kept(CDI_SPEC_STEP, f"CDI specifications are made {reason}")) if asked else told
    outcomes = _by_unit(host, stale) if _units(host) else _by_command(host, stale, behind, asked=asked)
    kept = Kept(CDI_SPEC_STEP, f"{len(_devices(host))} devices of {KIND} are in {_where(host)}")
    return (*told, *(outcomes or (kept,)))


def wanted(spec: Spec) -> bool:
    """Whether anything of the spec takes GPUs from CDI specifications; mode jit-cdi makes its own as it goes."""
    by_engine = spec.runtime.cdi and bool({"runtime", "toolkit"} & set(spec.only))
    return by_engine or (spec.toolkit_config.mode == "cdi" and "toolkit" in spec.only)


def _not_now(host: HostFacts, *, pending: bool) -> str:
    if host.init == "chroot":
        return "on the machine itself: an image has no GPUs"
    if pending:
        return "after driver and toolkit"
    if host.toolkit.version is None:
        return "by nvidia-ctk, which is not here: install the toolkit (--only toolkit)"
    if host.driver.loaded is None:
        return "once the driver is loaded"
    return ""


def _told(host: HostFacts, behind: tuple[RuntimeFacts, ...]) -> tuple[Outcome, ...]:
    """nvidia-cdi-refresh's settings, with the flag that keeps its specification readable for these engines."""
    file = host.file(refresh_env.PATH)
    here = bool(_units(host)) or file.exists  # in a chroot no unit is seen
    if not behind or not here or not cdi_versions.writes_new(host.toolkit.version):
        return ()
    engines = cdi_versions.titles(behind)
    if file.unread:
        text = f"{file.path} could not be read, and {engines} cannot read the specification that is made without it"
        remedy = Remedy(RepairAction.CONFIGURE, "make it a plain text file")
        return (Kept(CDI_READABLE_STEP, text, refused=True, evidence=file.unread, remedy=remedy),)
    if refresh_env.is_flagged(file.text or ""):
        return ()
    text = refresh_env.flagged(file.text or "")
    return (
        Step(
            CDI_READABLE_STEP,
            f"let nvidia-cdi-refresh write CDI specifications that {engines} can read, by {file.path}",
            f"toolkit {host.toolkit.version} writes version 0.7 otherwise, with the groups of device nodes; without "
            "them a container's user who is not root opens /dev/dri only by a group of its own (--group-add)",
            (PutFile(file.path, text, expect_sha256=file.sha256),),
            diff=unified(file.path, file.text, text),
            safe=True,
        ),
    )


def _by_unit(host: HostFacts, stale: Stale) -> tuple[Outcome, ...]:
    """nvidia-cdi-refresh renews /var/run/cdi/nvidia.yaml by itself: it is switched on, and no second file is made."""
    loose = tuple(unit for unit in _units(host) if not host.services[unit].enabled.startswith("enabled"))
    lasting = tuple(f for f in _specs(host) if f.path.startswith(f"{DIRECTORY}/"))
    old = tuple(f for f in lasting if f.path in stale or (not loose and _covered(host, f, stale)))
    made = tuple(f for f in _specs(host) if not f.path.startswith(f"{DIRECTORY}/"))
    found: list[Outcome] = []
    if old:
        found.append(_away(old, stale))
    if loose:
        actions: tuple[Action, ...] = (Run(("systemctl", "enable", "--now", *loose), timeout_s=120), _listed())
        why = "a specification fits one driver and one set of GPUs; the toolkit's own unit renews it with them"
        undo = (Run(("systemctl", "disable", "--now", *loose), timeout_s=120),)
        found.append(Step(CDI_REFRESH_STEP, f"switch on {' and '.join(loose)}", why, actions, undo, safe=True))
    elif all(f.path in stale for f in made):
        why = f"it writes /var/run/cdi/nvidia.yaml, which is {stale[made[0].path] if made else 'not there'}"
        again = Run(("systemctl", "restart", UNITS[1]), timeout_s=120)
        found.append(Step(CDI_REFRESH_STEP, f"run {UNITS[1]}", why, (again, _listed()), safe=True))
    return tuple(found)


def _away(old: tuple[FileFacts, ...], stale: Stale) -> Step:
    names = ", ".join(file.path for file in old)
    wrong = next((stale[file.path] for file in old if file.path in stale), "")
    return Step(
        CDI_STALE_STEP,
        f"move {names} away, {f'which is {wrong}' if wrong else 'a second one of the same models'}",
        "nvidia-cdi-refresh keeps one in /var/run/cdi; where two define a GPU, the older may be the one that is used",
        tuple(RemoveFile(file.path, file.sha256) for file in old),
        safe=True,
    )


def _by_command(host: HostFacts, stale: Stale, behind: tuple[RuntimeFacts, ...], *, asked: bool) -> tuple[Outcome, ...]:
    """An older toolkit, or no systemd: nvidia-ctk writes the file, and again after each change of driver or GPUs."""
    paths = tuple(stale)
    old_form = bool(behind) and cdi_versions.writes_new(host.toolkit.version)
    flag = (f"--feature-flag={cdi_versions.FLAG}",) if old_form else ()
    if asked and not _specs(host):
        paths = (LASTING,)
    if not paths:
        return ()
    actions: list[Action] = [Run(("mkdir", "-p", DIRECTORY))] if LASTING in paths else []
    undo: list[Action] = []
    for path in paths:
        # The driver's tools may take a while to wake a GPU.
        argv = ("nvidia-ctk", "cdi", "generate", f"--output={path}", *flag)
        actions.append(Run(argv, timeout_s=120, files=(path,)))
        text = host.file(path).text
        undo.append(RemoveFile(path) if text is None else PutFile(path, text, any_before=True))
    what = next(iter(stale.values()), "missing")
    return (
        Step(
            CDI_SPEC_STEP,
            f"let nvidia-ctk write {', '.join(paths)}",
            f"the CDI specification is {what}; nothing here renews it by itself: run gpunode setup after a new driver",
            (*actions, _listed()),
            tuple(undo),
            safe=True,
        ),
    )


def _listed() -> Run:
    return Run(("sh", "-s"), timeout_s=60, stdin=LISTED, description="nvidia-ctk cdi list: the GPUs are in it")


def _units(host: HostFacts) -> tuple[str, ...]:
    if host.init != "systemd":
        return ()
    return tuple(unit for unit in UNITS if unit in host.services and host.services[unit].load == "loaded")


def _specs(host: HostFacts) -> tuple[FileFacts, ...]:
    files = (host.file(path) for path in host.toolkit.cdi_specs)
    return tuple(file for file in files if kind_of(file.text or "") == KIND)


def _stale(host: HostFacts, behind: tuple[RuntimeFacts, ...]) -> Stale:
    """Those of a driver that is not the loaded one or of other GPUs, and those that an engine here cannot read."""
    found = {file.path: _wrong(host, file.text or "", behind) for file in _specs(host)}
    return {path: wrong for path, wrong in found.items() if wrong}


def _wrong(host: HostFacts, text: str, behind: tuple[RuntimeFacts, ...]) -> str:
    loaded = host.driver.loaded
    if loaded and "libcuda.so." in text and not re.search(rf"libcuda\.so\.{re.escape(loaded)}\b", text):
        return "of another driver"
    if behind and cdi_versions.is_new(text):
        return f"of version {cdi_versions.version_of(text)}, which {cdi_versions.titles(behind)} cannot read"
    if other := difference(host.driver.smi, text):
        return f"of other GPUs or MIG instances ({other})"
    return ""


def _covered(host: HostFacts, file: FileFacts, stale: Stale) -> bool:
    """Whether another directory's specification defines each of its devices: then it is a duplicate."""
    mine = set(names(file.text or ""))
    others = [f for f in _specs(host) if not f.path.startswith(f"{DIRECTORY}/") and f.path not in stale]
    return bool(mine) and any(mine <= set(names(other.text or "")) for other in others)


def _devices(host: HostFacts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(d for d in host.toolkit.cdi_devices if d.startswith(f"{KIND}=")))


def _where(host: HostFacts) -> str:
    return ", ".join(file.path for file in _specs(host))
