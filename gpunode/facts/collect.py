"""One round trip to a host, and everything that is known about it afterwards."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from gpunode import resources
from gpunode.errors import TransportError
from gpunode.facts.clock import parse_skew
from gpunode.facts.devices import parse_devices, parse_uvm_major
from gpunode.facts.driver import parse_driver
from gpunode.facts.initramfs import parse_dracut
from gpunode.facts.journal import parse_journal
from gpunode.facts.kept_parts import KeptPart
from gpunode.facts.kernel import (
    initramfs_tool,
    parse_barred,
    parse_blacklist,
    parse_compiler,
    parse_next_boot,
    parse_options,
    parse_trees,
    version_key,
)
from gpunode.facts.kernel_log import parse_kernel_log, parse_kernel_state
from gpunode.facts.kubernetes import kubernetes_of
from gpunode.facts.packages import parse_packages
from gpunode.facts.packed import unpacked
from gpunode.facts.pci import PciFacts, parse_pci
from gpunode.facts.probe_script import NOT_PROBED, probe_script
from gpunode.facts.readers import Units
from gpunode.facts.recordings import load_recording as load_recording
from gpunode.facts.release import Identity, parse_identity, parse_os
from gpunode.facts.runtimes import parse_runtimes, readers
from gpunode.facts.security import parse_security
from gpunode.facts.services import parse_services, parse_units
from gpunode.facts.system import parse_system
from gpunode.facts.toolkit import parse_toolkit
from gpunode.facts.topology import parse_topology
from gpunode.facts.trust import parse_ignored
from gpunode.facts.vgpu import with_vgpus
from gpunode.facts.wire import Sections, decode
from gpunode.model.connection import Connection
from gpunode.model.facts import (
    NOT_UNDERSTOOD,
    DriverFacts,
    HostFacts,
    JournalFacts,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    PciDevice,
    RuntimeFacts,
    SecurityFacts,
    ToolkitFacts,
)
from gpunode.model.kernel_log import KernelLog
from gpunode.model.operator import driver_pods
from gpunode.model.packages import PackageFacts
from gpunode.packages.probe import probe_part
from gpunode.remedy import Remedy, RepairAction
from gpunode.transport.base import Question, StillRunning, Transport, Way

# nvidia-smi alone may take 30 s before it is given up; every other tool has a limit of its own before that.
PROBE_TIMEOUT_S = 75.0
LOGS_TIMEOUT_S = 60.0  # each log has 15 s, and all are read at once
LOG_SCRIPTS = ("trust", "probe/wire", "probe/run", "probe/logs")
_REBOOT_FILES = ("/run/reboot-required.pkgs", "/run/reboot-required")
_NO_FAULT = (0, 127)  # 127: the tool is not there, which is a fact
# Their exit codes are part of the answer, and the parsers read them; so are those of the engines (readers.py).
_CHECKED_ELSEWHERE = ("smi", "modinfo", "cli_info")

Part = TypeVar("Part")


def probe(transport: Transport) -> bytes:
    """The probe's stream from this host, whole.

    Raises TransportError when the host answers something else, or not all of it, or not in time.
    """
    return _answer(transport)[0]


def _answer(transport: Transport, first: str = "") -> tuple[bytes, Sections, Way | None]:
    """The stream, what it holds, and how it came; no sections where `first` printed something."""
    script = probe_script(first)
    if not first or isinstance(first, Question):
        script = _question(script)
    try:
        done = transport.run(script, timeout_s=PROBE_TIMEOUT_S)
    except StillRunning as late:
        problem = f"the probe did not come back in {PROBE_TIMEOUT_S:.0f} s"
        raise StillRunning(problem, evidence=late.evidence, remedy=late.remedy) from late
    if first and done.stdout == NOT_PROBED:
        return done.stdout, Sections(), done.way
    try:
        stream = unpacked(done.stdout)
        return stream, decode(stream), done.way
    except TransportError as fault:
        error_output = done.stderr.decode("utf-8", "replace").strip()
        if not error_output:
            raise
        evidence = f"{fault.evidence}; its error output: {error_output[:300]}"
        raise TransportError(fault.problem, evidence=evidence, remedy=fault.remedy) from fault


@lru_cache(maxsize=2)
def _question(script: str) -> Question:
    """It is compressed once, and held once, as long as it is the same object."""
    return Question(script)


def logs(transport: Transport, units: Sequence[str]) -> Sections:
    """What logs say of these units, of DKMS's builds and of the GPUs, for a support bundle (shell/probe/logs.sh).

    Raises TransportError as `probe` does.
    """
    done = transport.run(logs_script(units), timeout_s=LOGS_TIMEOUT_S)
    return decode(done.stdout)


def logs_script(units: Sequence[str]) -> str:
    """`units` are names of gpunode's own (facts/logs.py)."""
    names = f"LOG_UNITS={shlex.quote(' '.join(units))}"
    return "\n".join((probe_part(), *map(resources.script, LOG_SCRIPTS), names, "gpunode_logs </dev/null\n"))


def collect(transport: Transport, answered: Callable[[], None] = lambda: None) -> HostFacts:
    """Probe the host and return what is known. Raises TransportError as `probe` does.

    `answered` is called once the answer is there, before it is understood.
    """
    stream, sections, way = _answer(transport)
    answered()
    return _assembled(sections, stream, transport.target, way)


def collect_unless(transport: Transport, first: str) -> HostFacts | None:
    """What is known, unless the script `first` prints something on the host: then nothing is probed, and it is None.

    Both go in one round trip. Raises TransportError as `probe` does.
    """
    stream, sections, way = _answer(transport, first)
    return _assembled(sections, stream, transport.target, way) if sections.commands else None


def assemble(stream: bytes, target: str, way: Way | None = None) -> HostFacts:
    """Pure: a stream, new or recorded, as HostFacts. What cannot be understood is None and named in `unread`.

    `way`: how it came, where that was over SSH.

    Raises TransportError for a stream that is truncated, of another version, or without the host's identity.
    """
    return _assembled(decode(stream), stream, target, way)


def _assembled(sections: Sections, stream: bytes, target: str, way: Way | None) -> HostFacts:
    unread = _unread(sections)

    def part(name: str, read: Callable[[], Part], default: Part) -> Part:
        try:
            return read()
        except (ValueError, IndexError, KeyError) as fault:  # a section in an unforeseen form must not hide the rest
            unread.setdefault(name, f"{NOT_UNDERSTOOD}{fault}")
            return default

    identity = _identity(sections)
    no_units: Units = MappingProxyType({})
    units = part("services", lambda: _UNITS(sections), no_units)
    active = {name: value.get("ActiveState", "inactive") for name, value in units.items()}
    states = tuple(active.items())
    packages = part("packages", lambda: _PACKAGES(sections, states), PackageFacts())
    driver = part("driver", lambda: _DRIVER(sections), DriverFacts())
    kubernetes = part("kubernetes", lambda: _KUBERNETES(sections), KubernetesFacts())
    if driver_pods(kubernetes):
        driver = replace(driver, container=True)
    bus = part("pci", lambda: _PCI(sections), PciFacts())
    for name, why in bus.unread.items():
        unread.setdefault(name, why)
    pci = with_vgpus(bus.devices, driver.smi, virtual=identity.virtualization is not None)
    return HostFacts(
        target=target,
        hostname=identity.hostname,
        os=part("os", lambda: _OS(sections, identity.machine), OsFacts("", "", machine=identity.machine)),
        kernel=part("kernel", lambda: _kernel(sections, identity), KernelFacts(identity.kernel, identity.boot_id)),
        root=identity.root,
        virtualization=identity.virtualization,
        image_based=identity.image_based,
        cgroup=identity.cgroup,
        user_namespace=identity.user_namespace,
        product=identity.product,
        platform=identity.platform or _platform_of_gpus(pci, identity),
        init=identity.init,
        init_scripts=identity.init_scripts,
        pci=pci,
        driver=driver,
        devices=part("devices", lambda: _DEVICES(sections), ()),
        uvm_major=parse_uvm_major(sections.text("proc_devices")),
        toolkit=part("toolkit", lambda: _TOOLKIT(sections), ToolkitFacts()),
        runtimes=part("runtimes", lambda: _engines(sections, units, identity), ()),
        packages=packages,
        security=part("security", lambda: _SECURITY(sections), SecurityFacts()),
        services=part("services", lambda: parse_services(units), MappingProxyType({})),
        kubernetes=kubernetes,
        journal=part("journal", lambda: parse_journal(sections.text("journal"), active, packages.held), JournalFacts()),
        log=part("kernel_log", lambda: _LOG(sections), KernelLog()),
        kernel_state=part("kernel_state", lambda: parse_kernel_state(sections.text("kernel_state")), None),
        system=part("system", lambda: _SYSTEM(sections), None),
        topology=part("topology", lambda: _TOPOLOGY(sections), None),
        ignored=part("ignored", lambda: parse_ignored(sections.text("ignored")), ()),
        files=sections.files,
        unread=MappingProxyType(unread),
        connection=_connection(sections, way) if way else None,
        stream_sha256=hashlib.sha256(stream).hexdigest(),
    )


# What depends on sections alone, or on few words more: of a fleet's next host most are as the last one's.
_UNITS = KeptPart(lambda sections: parse_units(sections.text("services")))
_PACKAGES = KeptPart(lambda sections, states: parse_packages(sections, dict(states)))
_DRIVER = KeptPart(parse_driver)
_PCI = KeptPart(lambda sections: parse_pci(sections.text("pci"), sections.text("lspci")))
_OS = KeptPart(lambda sections, machine: parse_os(sections.text("os"), machine))
_DEVICES = KeptPart(lambda sections: parse_devices(sections.text("devices"), sections.text("dev_char")))
_TOOLKIT = KeptPart(parse_toolkit)
_SECURITY = KeptPart(lambda sections: parse_security(sections.text("security")))
_KUBERNETES = KeptPart(kubernetes_of)
_SYSTEM = KeptPart(parse_system)
_TOPOLOGY = KeptPart(parse_topology)
_LOG = KeptPart(lambda sections: parse_kernel_log(sections.text("kernel_log")))


def _connection(sections: Sections, way: Way) -> Connection:
    skew = parse_skew(sections.text("clock"), way.sent_at, way.answered_at)
    return Connection(way.user, way.host_key, way.known_in, way.becomes, way.may_ask, skew)


def _identity(sections: Sections) -> Identity:
    try:
        return parse_identity(sections.text("identity"))
    except ValueError as fault:
        why = sections.commands["probe"].text.strip() if "probe" in sections.commands else str(fault)
        raise TransportError(
            "the probe could not work on this host",
            evidence=why,
            remedy=Remedy(RepairAction.CONFIGURE, "make room in /run or /tmp, mount /proc and /dev, and try again"),
        ) from fault


def _platform_of_gpus(pci: tuple[PciDevice, ...], identity: Identity) -> str | None:
    """In an image that is being built the GPUs are the builder's."""
    return "vgpu" if identity.init != "chroot" and any(device.vgpu for device in pci) else None


def _kernel(sections: Sections, identity: Identity) -> KernelFacts:
    trees = parse_trees(sections.text("kernel_trees"), sections.text("nvidia_ko"))
    cmdline = sections.text("cmdline").strip()
    bootable = [tree.release for tree in trees if tree.bootable]
    next_boot = parse_next_boot(sections.text("next_boot"), trees)
    release = identity.kernel
    if identity.init == "chroot":  # it does not run: what uname says is the kernel of the machine that builds it
        release = next_boot or max(bootable, key=version_key, default="")
    reboot = (sections.files[path].text for path in _REBOOT_FILES if path in sections.files)
    return KernelFacts(
        release=release,
        boot_id=identity.boot_id,
        cmdline=cmdline,
        trees=tuple(tree for tree in trees if tree.bootable or tree.release == release),
        modules=frozenset(sections.text("modules").split()),
        blacklisted=parse_blacklist(sections.text("blacklist"), cmdline),
        barred=parse_barred(sections.text("blacklist"), cmdline),
        options=parse_options(sections.text("blacklist")),
        next_boot=next_boot,
        initramfs_tool=initramfs_tool(sections.text("tools")),
        dracut=parse_dracut(sections),
        compiler=parse_compiler(sections.text("kernel_version")),
        reboot_required=next((text.strip() for text in reboot if text is not None and text.strip()), None),
    )


def _engines(sections: Sections, units: Units, identity: Identity) -> tuple[RuntimeFacts, ...]:
    return tuple(replace(engine, init=identity.init) for engine in parse_runtimes(sections, units))


def _unread(sections: Sections) -> dict[str, str]:
    """section -> why: not run, given up, or failed in a way that leaves its facts unknown."""
    found: dict[str, str] = {}
    checked = (*_CHECKED_ELSEWHERE, *(name for reader in readers() for name in reader.sections))
    for name, section in sections.commands.items():
        if section.rc is None:
            found[name] = section.unread or "not run"
        elif section.rc == 127 and name == "kernel_log":  # it is no tool that a host may lack without a loss
            found[name] = "neither dmesg nor journalctl is there"
        elif section.rc == 124:
            found[name] = "did not answer within its limit"
        elif section.rc not in _NO_FAULT and not name.startswith(checked):
            first = section.text.strip().splitlines()
            found[name] = first[0] if first else f"exit code {section.rc}"
    found |= {path: file.unread for path, file in sections.files.items() if file.unread}
    return found
