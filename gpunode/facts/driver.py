"""The driver that is loaded, the one on disk, and what the loader gives to programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from gpunode.facts.gpu_users import parse_mps, parse_stuck, parse_uids
from gpunode.facts.kernel_log import logged_lines
from gpunode.facts.nvlink import parse_nvlinks, parse_peers
from gpunode.facts.release import key_values
from gpunode.facts.smi import parse_smi
from gpunode.facts.wire import Sections
from gpunode.foreign import whole_number
from gpunode.model.dkms import DkmsLine
from gpunode.model.driver import ModuleFlavour
from gpunode.model.facts import DriverFacts
from gpunode.model.smi import SmiFacts
from gpunode.model.system import ModprobeHelper
from gpunode.regex import regex

_NVRM = regex(r"NVRM version: NVIDIA UNIX (?P<open>Open Kernel Module for )?\S+\s.*?(?P<version>\d{3}\.\d+(\.\d+)?)")


def parse_driver(sections: Sections) -> DriverFacts:
    """Everything about the driver that is not the kernel's or the package manager's business."""
    name, version, state, refcnt = _module_line(sections.text("driver_modules"))
    nvrm = _NVRM.search(sections.text("driver_version"))
    marks = key_values(sections.text("driver_marks"))
    modinfo = parse_modinfo(sections.text("modinfo"))
    return DriverFacts(
        loaded=version or (nvrm["version"] if nvrm and name else None),
        loaded_flavour=None if nvrm is None else ("open" if nvrm["open"] else "proprietary"),
        installed=modinfo.get("version"),
        installed_flavour=flavour_of(modinfo.get("license")),
        signer=modinfo.get("signer"),
        initstate=state,
        refcnt=whole_number(refcnt),
        params=MappingProxyType(parse_params(sections.text("driver_params"))),
        gpus=tuple(
            line.removeprefix("gpu=") for line in sections.text("driver_marks").split() if line.startswith("gpu=")
        ),
        smi=_smi(sections),
        dkms=parse_dkms(sections.text("dkms")),
        libraries=parse_ldconfig(sections.text("ldconfig")),
        runfile="runfile" in marks,
        switch_management=tuple(
            line.removeprefix("sw_mng=") for line in sections.text("driver_marks").split() if line.startswith("sw_mng=")
        ),
        umad=marks["umad"] == "1" if "umad" in marks else None,
        container="container" in marks,
        image=marks.get("image"),
        modprobe=parse_modprobe(marks.get("modprobe")),
        kernel_log=logged_lines(sections.text("kernel_log")),
        busy=tuple(sections.text("busy").splitlines()),
        busy_uids=parse_uids(sections.text("busy_uids")),
        stuck=parse_stuck(sections),
        mps=parse_mps(sections),
    )


def flavour_of(license_line: str | None) -> ModuleFlavour | None:
    """modinfo's license: "Dual MIT/GPL" is the open module, "NVIDIA" the proprietary one."""
    if not license_line:
        return None
    return "open" if "MIT" in license_line or "GPL" in license_line else "proprietary"


def parse_modprobe(text: str | None) -> ModprobeHelper | Literal["absent"] | None:
    """`modprobe=89ed 0 0`: mode (hexadecimal, with the kind of file), owner and group of nvidia-modprobe."""
    if text == "absent":
        return "absent"
    found = re.fullmatch(r"([0-9a-f]{1,8}) ([0-9]{1,10}) ([0-9]{1,10})", text or "", re.A)
    return ModprobeHelper(int(found[1], 16) & 0o7777, int(found[2]), int(found[3])) if found else None


def parse_modinfo(text: str) -> dict[str, str]:
    """`modinfo nvidia`:

    filename:       /lib/modules/6.8.0-52-generic/updates/dkms/nvidia.ko.zst
    version:        580.95.05
    license:        Dual MIT/GPL
    signer:         gpu07 Secure Boot Module Signature key
    """
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs if value.strip()}


def parse_params(text: str) -> dict[str, str]:
    """/proc/driver/nvidia/params: `EnableGpuFirmware: 18`, values unquoted."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {key.strip(): value.strip().strip('"') for key, value in pairs}


def parse_dkms(text: str) -> tuple[DkmsLine, ...]:
    """`dkms status`; 2.x put a comma where 3.x has a slash, and lines without a kernel are only added:

    nvidia/580.95.05, 6.8.0-52-generic, x86_64: installed
    nvidia, 535.261.03, 6.1.0-30-amd64, x86_64: installed
    nvidia/580.95.05: added
    """
    lines = []
    for line in text.splitlines():
        head, colon, state = line.rpartition(":")
        words = [word.strip() for word in head.replace("/", ", ", 1).split(",")]
        if colon and len(words) >= 2:
            lines.append(
                DkmsLine(words[0], words[1], words[2] if len(words) > 2 else None, state.split("(")[0].strip())
            )
    return tuple(lines)


def parse_ldconfig(text: str) -> Mapping[str, tuple[str, ...]]:
    """`SONAME REAL_PATH` lines in loader order -> soname: paths, each once."""
    found: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        soname, _, path = line.partition(" ")
        if path:
            found.setdefault(soname, {})[path] = None
    return MappingProxyType({soname: tuple(paths) for soname, paths in found.items()})


def _module_line(text: str) -> tuple[str | None, ...]:
    """The line of nvidia itself among `NAME VERSION INITSTATE REFCNT`: nvidia 580.95.05 live 131"""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["nvidia"] and len(words) == 4:
            return tuple(None if word == "-" else word for word in words)
    return (None, None, None, None)


def _smi(sections: Sections) -> SmiFacts | None:
    section = sections.commands.get("smi")
    if section is None or section.rc is None:
        return None
    instances = sections.commands.get("smi_list")
    # With a lost GPU it ends with an error and has listed the others; cut off by its limit it has not.
    listed = instances.text if instances is not None and instances.rc != 124 else ""
    links = parse_nvlinks(sections.text("smi_links"), sections.text("smi_link_errors"))
    smi = parse_smi(section.text, section.rc, listed)
    peers = parse_peers(sections.text("smi_p2p"))
    if len(peers) != len(smi.gpus):  # without those that it cannot open its numbers are others
        peers = ((),) * len(smi.gpus)
    gpus = zip(smi.gpus, peers, strict=True)
    return replace(smi, gpus=tuple(replace(gpu, links=links.get(gpu.uuid or ""), peers=row) for gpu, row in gpus))
