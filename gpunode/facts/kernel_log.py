"""Events in the kernel's log, and the kernel's own counters.

Only a line's beginning is believed, which the kernel writes: names of processes, which users choose, come behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import MappingProxyType

from gpunode.facts.release import key_values
from gpunode.foreign import whole_number
from gpunode.model.kernel_log import (
    AerCounters,
    KernelLog,
    KernelState,
    LinkLosses,
    LoggedAer,
    LoggedSxid,
    LoggedXid,
)
from gpunode.regex import regex

MOST = 64  # different events of one kind; a host has a few
LONGEST_LINE = 2048
# "[ 9120.551201] " by dmesg; journalctl puts the host's name and "kernel: " behind it.
# Where the kernel keeps who wrote a line (CONFIG_PRINTK_CALLER), dmesg puts "[   T1234] " there.
_STAMP = regex(r"\[ *(?P<s>\d{1,9})\.\d{1,9}\](?: ?\[ *[TC]\d{1,10}\])? (?:\S{1,64} kernel: )?", re.A)
_BEGINS = regex(r"begins=(\d{1,9})\n", re.A)
_XID = regex(
    r"NVRM: Xid \((?:PCI:)?(?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:[. ][^)]{0,40})?\): "
    r"(?P<code>\d{1,5}), (?P<rest>.*)",
    re.A,
)
_SXID = regex(
    r"nvidia-nvswitch\d{1,3}: SXid \(PCI:(?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\): "
    r"(?P<code>\d{1,5}), (?P<rest>.*)",
    re.A,
)
# "pid=1896, name=python3, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x02...": of Xids 144 to 150. Link -1: of all.
_NVLINK5 = regex(
    r"[A-Z][A-Z0-9_/]{2,40} {1,4}(?P<how>Fatal|Non-?fatal) {1,4}XC\d.{0,12}?Link (?P<link>-1|\d{1,3})\b", re.A
)
_RECOVERY = regex(
    r"GPU recovery action changed from 0x[0-9a-f]{1,4} \([^)]{1,40}\) to 0x(?P<number>[0-9a-f]{1,4}) ",
    re.A,
)
_SWITCH_FATAL = regex(r"(?P<how>Fatal|Non-fatal)(?:, Link (?P<link>\d{1,3})\b)?", re.A)
# nvmlDeviceGpuRecoveryAction_t (nvml.h); the words behind the number differ from driver to driver.
RECOVERIES = {0: "None", 1: "Reset", 2: "Reboot", 3: "Drain P2P", 4: "Drain and Reset"}
_LOADING = "NVRM: loading NVIDIA UNIX "
_MACHINE_CHECK = regex(r"(?:mce: |\{\d{1,6}\})?\[Hardware Error\]: |EDAC MC\d{1,3}: \d{1,6} UE ", re.A)
_HUNG = regex(r"INFO: task .{1,80} blocked for more than \d{1,6} seconds", re.A)
_IN_DRIVER = regex(r"(?:\? )?[A-Za-z0-9_.]{1,80}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[nvidia(?:_[a-z]{1,8})?\]", re.A)
_AER = regex(
    r"nvidia (?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): (?:AER: )?PCIe Bus Error: severity="
    r"(?P<how>Corrected|Uncorrect(?:ed|able) \((?:Non-)?Fatal\))",
    re.A,
)
_FIRMWARE = regex(r"nvidia [0-9a-f:.]{12,16}: Direct firmware load for (?P<file>nvidia/[\w./-]{1,60}) failed", re.A)
# kernel_nvlink.c and kernel_nvlink_gh100.c of open-gpu-kernel-modules.
_NO_LINKS = regex(
    r"NVRM: (?:GPU\d{1,3} )?knvlink\w{1,60}: "
    r"(?:Failed to update Rx Detect Link mask|Getting peer\d{0,3}(?:'s)? postRxDetLinkMask failed)!",
    re.A,
)
# en_main.c and events.c of mlx5; bnxt_en, ice and ionic write "NIC Link is Down" and the like.
_LINK_LOST = regex(
    r"(?:mlx5_core|bnxt_en|ice|ionic) (?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: [\w.@-]{1,15})?: "
    r"(?:(?:NIC )?[Ll]ink (?:is )?[Dd]own|Port module event: module \d{1,3}, Cable unplugged)",
    re.A,
)
_CRASH = regex(r"^pstore=([\w.-]{1,80})$", re.M | re.A)
_STACK_S = 2  # a stack is printed right behind the line that says which task hangs


def logged_lines(text: str) -> tuple[str, ...]:
    """The kernel's own lines in the probe's section."""
    return tuple(_BEGINS.sub("", text, 1).splitlines()) if text.startswith("begins=") else tuple(text.splitlines())


def parse_kernel_log(text: str) -> KernelLog:
    """The probe's `kernel_log` section:

    begins=8630
    [ 9120.551201] NVRM: Xid (PCI:0000:1a:00): 95, pid=4120, name=python3, Uncontained: FBHUB. RST: Yes
    [  131.453740] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up
    """
    if not text:  # the probe keeps only lines that may be one of these: a healthy host has none
        return KernelLog()
    lines = tuple(sorted(map(_timed, text.split("\n")), key=lambda line: -1 if line[0] is None else line[0]))
    hung = [s for s, line in lines if _HUNG.match(line)]
    since = max((s for s, line in lines if s is not None and line.startswith(_LOADING)), default=None)
    stacks = {s for s, line in lines if s is not None and _IN_DRIVER.match(line.lstrip())}
    begins = _BEGINS.match(text)
    return KernelLog(
        begins_s=int(begins[1]) if begins else None,
        xids=_xids(lines),
        sxids=_sxids(lines),
        aer=_aer_errors(lines),
        driver_since_s=since,
        machine_checks=sum(bool(_MACHINE_CHECK.match(line)) for _, line in lines),
        links_lost=_links_lost(lines),
        hung_tasks=len(hung),
        hung_last_s=max((s for s in hung if s is not None), default=None),
        hung_in_driver=sum(s is not None and any(s + n in stacks for n in range(_STACK_S + 1)) for s in hung),
        links_undetected=sum((s or 0) >= (since or 0) and bool(_NO_LINKS.match(line)) for s, line in lines),
        firmware_missing=tuple(dict.fromkeys(f["file"] for _, line in lines if (f := _FIRMWARE.match(line))))[:MOST],
    )


def parse_kernel_state(text: str) -> KernelState | None:
    """The probe's `kernel_state` section; None for a recording without it:

    uptime=81233.10
    taint=12289
    pstore=dmesg-efi-171
    pstore_read=1
    aer=0000:1a:00.0 3 0 0
    edac=0 0
    """
    if not text:
        return None
    values = key_values(text)
    counts = [_numbers(line.removeprefix("edac="), 2) for line in text.split("\n") if line.startswith("edac=")]
    return KernelState(
        uptime_s=_counter(values.get("uptime", "").partition(".")[0]),
        taint=_counter(values.get("taint")),
        crashes=tuple(dict.fromkeys(_CRASH.findall(text)))[:MOST] if "pstore_read" in values else None,
        aer=MappingProxyType(dict(_aer(text))),
        memory_corrected=_sum(one[0] for one in counts),
        memory_uncorrected=_sum(one[1] for one in counts),
    )


_Line = tuple["int | None", str]  # seconds since boot, and the line behind its stamp


def _timed(line: str) -> _Line:
    stamp = _STAMP.match(line)
    return (int(stamp["s"]), line[stamp.end() : LONGEST_LINE]) if stamp else (None, line[:LONGEST_LINE])


def _xids(lines: Iterable[_Line]) -> tuple[LoggedXid, ...]:
    found: dict[tuple[int, str], LoggedXid] = {}
    for seconds, line in lines:
        if not (match := _XID.match(line)):
            continue
        key = int(match["code"]), short_address(match["address"])
        before = found.get(key)
        if before is None and len(found) >= MOST:
            continue
        found[key] = _with(before or LoggedXid(*key, count=0), seconds, match["rest"])
    return tuple(found.values())


def _with(xid: LoggedXid, seconds: int | None, rest: str) -> LoggedXid:
    """The same with one more line."""
    xid = replace(xid, count=xid.count + 1, last_s=seconds)
    if 144 <= xid.code <= 150 and (link := _NVLINK5.search(rest)):
        number = int(link["link"])
        return replace(xid, fatal=bool(xid.fatal) or link["how"] == "Fatal", link=number if number >= 0 else None)
    if xid.code == 154 and (recovery := _RECOVERY.match(rest)):
        return replace(xid, recovery=RECOVERIES.get(int(recovery["number"], 16), "another one"))
    return xid


def _sxids(lines: Iterable[_Line]) -> tuple[LoggedSxid, ...]:
    found: dict[tuple[int, str], LoggedSxid] = {}
    for seconds, line in lines:
        match = _SXID.match(line)
        # Its second line, "Severity 0 Engine instance 36 ...", and its third, "Data {0x...", say more of the first.
        if not match or match["rest"].startswith(("Severity ", "Data ")):
            continue
        key = int(match["code"]), short_address(match["address"])
        one = found.get(key) or LoggedSxid(*key, count=0)
        if key not in found and len(found) >= MOST:
            continue
        how = _SWITCH_FATAL.match(match["rest"])
        fatal = one.fatal if how is None else bool(one.fatal) or how["how"] == "Fatal"
        link = int(how["link"]) if how and how["link"] else one.link
        found[key] = replace(one, count=one.count + 1, last_s=seconds, fatal=fatal, link=link)
    return tuple(found.values())


def _aer_errors(lines: Iterable[_Line]) -> tuple[LoggedAer, ...]:
    found: dict[tuple[str, str], LoggedAer] = {}
    for seconds, line in lines:
        if not (match := _AER.match(line)):
            continue
        how = "corrected" if match["how"] == "Corrected" else "nonfatal" if "Non-" in match["how"] else "fatal"
        key = match["address"], how
        if key in found or len(found) < MOST:
            one = found.get(key) or LoggedAer(*key, count=0)
            found[key] = replace(one, count=one.count + 1, last_s=seconds)
    return tuple(found.values())


def _links_lost(lines: Iterable[_Line]) -> tuple[LinkLosses, ...]:
    """A cable that is pulled gives two lines, of the module and of the link: those of one second are one loss."""
    found: dict[str, list[int | None]] = {}
    for seconds, line in lines:
        if not (match := _LINK_LOST.match(line)):
            continue
        address = match["address"]
        if address in found or len(found) < MOST:
            times = found.setdefault(address, [])
            if seconds is None or not times or times[-1] is None or seconds - times[-1] > 1:
                times.append(seconds)
    return tuple(LinkLosses(address, tuple(times[-MOST:])) for address, times in found.items())


def short_address(address: str) -> str:
    """ "0000:1c:00" for "00000000:1C:00", as sysfs spells it."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:] if len(domain) > 4 and not domain[:-4].strip('0') else domain}:{rest}"


def _aer(text: str) -> Iterator[tuple[str, AerCounters]]:
    for line in text.split("\n"):
        address, _, numbers = line.removeprefix("aer=").partition(" ")
        if line.startswith("aer=") and re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", address):
            yield address, AerCounters(*_numbers(numbers, 3))


def _numbers(text: str, count: int) -> tuple[int | None, ...]:
    """So many counters; "-" and what is none are None."""
    words = text.split()
    return tuple(_counter(words[n] if n < len(words) else None) for n in range(count))


def _counter(text: str | None) -> int | None:
    number = whole_number(text)
    return number if number is not None and number >= 0 else None


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
