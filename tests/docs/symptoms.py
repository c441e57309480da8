"""The tables of docs/how-to/troubleshooting.md: what somebody reads, what gpunode finds behind it, what is to be done.

The hosts are those of tests/checks/test_scenarios.py, each with one fault and all its symptoms; the words are the
report's own.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from gpunode.model.report import Finding
from gpunode.render.remedy_text import remedy_text
from tests.checks.test_scenarios import SCENARIOS, report_of

# What stands in a log or on a terminal, by the number of the reported fault. Without one the scenario's own words do.
SEEN = {
    "1": "Failed to initialize NVML: Unknown Error",
    "2": "Failed to initialize NVML: Driver/library version mismatch",
    "3": "unknown service runtime.v1.RuntimeService",
    "5": "drop-in config version 4 higher than root config version 2",
    "6": "unsupported config version: 3",
    "7": "container.Runtime.Name must be set: invalid argument",
    "8": 'no runtime for "nvidia" is configured',
    "12": 'could not select device driver "" with capabilities: [[gpu]]',
    "13": "The Nouveau kernel driver is currently in use by your system",
    "14": "NVRM: GPU 0000:01:00.0 is already bound to NovaCore",
    "15": "could not insert 'nvidia': Key was rejected by service",
    "16": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
    "17": "Unable to find the kernel source tree for the currently running kernel",
    "18": "unrecognized command-line option '-ftrivial-auto-var-init=zero'",
    "19": "does not include the required GPU System Processor (GSP)",
    "20": "RmInitAdapter failed! (0x22:0x56:884)",
    "21": "fabric manager NVIDIA GPU driver interface version ... don't match with driver version",
    "22": "WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
    "24": "E: Conflicting values set for option Signed-By",
    "25": "NO_PUBKEY",
    "26": "File has unexpected size. Mirror sync in progress?",
    "27": "Could not get lock /var/lib/dpkg/lock-frontend",
    "28": "Unable to correct problems, you have held broken packages",
    "29": "load library failed: libnvidia-ml.so.1: cannot open shared object file",
    "30": "bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted",
    "31": "lstat /dev/nvidia-uvm: no such file or directory",
    "32": "unresolvable CDI devices nvidia.com/gpu=all",
    "34": "Could not unload NVIDIA driver kernel modules, driver is in use",
    "35": "In use by another client",
    "36": "mkdirat etc/nvidia/nvidia-application-profiles-rc.d: read-only file system",
    "37": "could not insert 'nvidia': Permission denied",
    "38": "GPU has fallen off the bus",
}
SECTIONS = {
    "The driver and nvidia-smi": "2 13 14 15 16 17 18 19 20 29 31 34 37 38",
    "Containers and engines": "1 6 7 8 9 11 12 30 32 36",
    "Nodes of Kubernetes": "3 4 5 10 33",
    "NVSwitch, NVLink and MIG": "21 22 23 35",
    "Packages and repositories": "24 25 26 27 28",
    "Nodes that look healthy": "sick:",
}
CHECKS = "../reference/checks.md"


def tables() -> str:
    """All sections, as they stand on the page."""
    return "\n".join(line for title, numbers in SECTIONS.items() for line in _section(title, numbers.split()))


def _section(title: str, numbers: list[str]) -> Iterator[str]:
    yield from (f"## {title}", "", "| you see | gpunode says | what to do |", "|---|---|---|")
    seen: set[tuple[str, str]] = set()
    for number in numbers:
        for name, host, id in SCENARIOS:
            if name.split()[0] != number or ((number, id) in seen and number != "12"):
                continue
            seen.add((number, id))
            found = report_of(host).causes[0].outcome
            assert isinstance(found, Finding)
            said = f"[`{id}`]({CHECKS}): {_cell(found.summary)}"
            yield f"| {_symptom(number, name)} | {said} | {_cell(remedy_text(found.remedy))} |"
    yield ""


def _symptom(number: str, name: str) -> str:
    own = name.removeprefix(number).strip()
    if number not in SEEN:
        return _cell(own)
    more = own.partition(": ")[2] if number in ("12", "21", "30") else ""
    return f"`{SEEN[number]}`" + (f" ({_cell(more)})" if more else "")


def _cell(text: str) -> str:
    """Plain words in a cell of a table: nothing in them means anything to Markdown."""
    plain = html.escape(text, quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
    return plain.replace("{{", "{&#123;").replace("[", "\\[")
