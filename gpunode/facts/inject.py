"""A recording in which something has happened: its kernel log as it would be then. Nothing is broken for it.

For alarms that want to be tried out, and for tests: `gpunode check --recorded HOST --inject xid=79,gpu=3`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.facts.collect import assemble
from gpunode.facts.wire import Sections, decode, encode
from gpunode.foreign import whole_number
from gpunode.model.facts import HostFacts, PciDevice

KINDS = ("xid=CODE,gpu=N", "sxid=CODE,switch=N", "aer=corrected|nonfatal|fatal,gpu=N", "hang", "mce")
MOST_CODE = 99999
_XID_WORDS = {
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    154: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
}
_NVLINK5_WORDS = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 00 (0x00000000 0x00000000)"
_AER_WORDS = {"corrected": "Corrected", "nonfatal": "Uncorrected (Non-Fatal)", "fatal": "Uncorrected (Fatal)"}
_SWITCH_CLASS = "0680"
_FIRST_S = 3600  # of a log without times, or without a line


def injected(stream: bytes, asked: Sequence[str]) -> bytes:
    """The recording with what is asked for in its kernel log. Raises UsageError for what it cannot be."""
    sections = decode(stream)
    log = sections.commands.get("kernel_log")
    if log is None or log.rc != 0:
        raise UsageError(
            "--inject needs a recording with a kernel log",
            evidence="without one no check would see it on that host either",
            remedy="record a host as root, or take a sample host",
        )
    host = assemble(stream, "recording")
    now_s = _now_s(host, log.text)
    lines = [f"[{now_s:5}.000000] {line}\n" for text in asked for line in _lines(host, text)]
    commands = dict(sections.commands) | {"kernel_log": replace(log, text=log.text + "".join(lines))}
    return encode(Sections(MappingProxyType(commands), sections.files))


def _now_s(host: HostFacts, text: str) -> int:
    """A moment behind all that is in the log."""
    stamps = [int(stamp) for stamp in re.findall(r"^\[ *([0-9]{1,9})\.", text, re.M)]
    known = host.kernel_state.uptime_s if host.kernel_state else None
    return max([*stamps, known or 0]) + 1 if stamps or known else _FIRST_S


def _lines(host: HostFacts, text: str) -> tuple[str, ...]:
    pairs = [word.partition("=") for word in text.split(",")]
    kind, _, value = pairs[0]
    make, where = _MAKERS.get(kind, (None, ""))
    if make is None or any(key != where for key, _, _ in pairs[1:]) or len(pairs) > 2:
        raise _refused(text, f"{meant(kind, _MAKERS)}it can be {', '.join(KINDS)}")
    return make(host, value, pairs[1][2] if pairs[1:] else "0")


def _xid(host: HostFacts, value: str, which: str) -> tuple[str, ...]:
    code = _code(f"xid={value}", value)
    slot = _one(host.gpus, "gpu", which).address.rpartition(".")[0]
    words = _NVLINK5_WORDS if 144 <= code <= 150 else "pid=1, name=injected, by --inject"
    return (f"NVRM: Xid (PCI:{slot}): {code}, {_XID_WORDS.get(code, words)}",)


def _sxid(host: HostFacts, value: str, which: str) -> tuple[str, ...]:
    code = _code(f"sxid={value}", value)
    switches = [d for d in host.pci if d.vendor == "10de" and d.class_code == _SWITCH_CLASS]
    address = _one(switches, "switch", which).address
    return (f"nvidia-nvswitch0: SXid (PCI:{address}): {code}, Fatal, Link 00 by --inject",)


def _aer(host: HostFacts, value: str, which: str) -> tuple[str, ...]:
    if value not in _AER_WORDS:
        raise _refused(f"aer={value}", f"it is one of {', '.join(_AER_WORDS)}")
    address = _one(host.gpus, "gpu", which).address
    return (f"nvidia {address}: PCIe Bus Error: severity={_AER_WORDS[value]}, type=Transaction Layer, by --inject",)


def _hang(host: HostFacts, value: str, which: str) -> tuple[str, ...]:
    return (
        "INFO: task nvidia-smi:1234 blocked for more than 120 seconds.",
        " os_acquire_rwlock_write+0x35/0x50 [nvidia]",
    )


def _mce(host: HostFacts, value: str, which: str) -> tuple[str, ...]:
    return ("mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 7: 8c00004000010090",)


_Maker = Callable[[HostFacts, str, str], tuple[str, ...]]
# kind -> what makes its lines, and the word that says at which device.
_MAKERS: Mapping[str, tuple[_Maker, str]] = {
    "xid": (_xid, "gpu"),
    "sxid": (_sxid, "switch"),
    "aer": (_aer, "gpu"),
    "hang": (_hang, "nothing"),
    "mce": (_mce, "nothing"),
}


def _code(text: str, value: str) -> int:
    code = whole_number(value)
    if code is None or not 0 < code <= MOST_CODE:
        raise _refused(text, f"a number from 1 to {MOST_CODE} is expected")
    return code


def _one(devices: Sequence[PciDevice], word: str, which: str) -> PciDevice:
    """By its number in bus order, or by its address."""
    number = whole_number(which)
    if number is not None and 0 <= number < len(devices):
        return devices[number]
    if found := next((device for device in devices if device.address == which), None):
        return found
    have = ", ".join(f"{n} ({device.address})" for n, device in enumerate(devices)) or "none"
    raise _refused(f"{word}={which}", f"the recording has {have}")


def _refused(text: str, evidence: str) -> UsageError:
    return UsageError(
        f"--inject {text!r} is nothing that can happen here", evidence=evidence, remedy="correct it: xid=79,gpu=0"
    )
