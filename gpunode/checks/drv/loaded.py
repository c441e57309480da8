"""The module in the kernel's memory."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs, signing
from gpunode.checks.drv.packages import CORE
from gpunode.checks.log.lines import since_loaded
from gpunode.checks.pci import in_lines
from gpunode.checks.registry import Context, check
from gpunode.checks.words import driver_version
from gpunode.model.entities import pci, place
from gpunode.model.facts import HostFacts
from gpunode.model.installed import installed_version, lead_package, signs_of_driver
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

BY_RUNFILE = Remedy(
    RepairAction.UPGRADE,
    "run the .run installer again for this kernel; or nvidia-uninstall, then ",
    setup("--only", "driver"),
)


# For libraries of another version than the loaded module: a reboot would load the same module again.
ONE_VERSION = Remedy(
    RepairAction.UPGRADE,
    "the module on disk is the one that is loaded, so no reboot helps; ",
    setup("--only", "driver"),
    " installs module and libraries in one version",
)
# CUDA's forward compatibility (cuda-compat-13-1) has its own libcuda, of a newer driver, and is meant to.
COMPAT = "/compat/"


@check(
    "drv.module-loaded",
    Severity.ERROR,
    title="the nvidia kernel module is live",
    reads="/sys/module/nvidia/initstate and version",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver"), ", or modprobe nvidia and read its output"),
    needs=(needs.gpu, needs.host_driver),
)
def module_loaded(host: HostFacts, context: Context) -> CheckOutcome:
    """The nvidia module is not loaded."""
    if host.driver.loaded is not None and host.driver.initstate in (None, "live"):
        return None
    if host.driver.loaded is not None:
        return Finding(
            f"the nvidia module is {host.driver.initstate}, not live",
            evidence=f"/sys/module/nvidia/initstate is {host.driver.initstate}",
            remedy=Remedy(
                RepairAction.REBOOT,
                "journalctl -k -b | grep NVRM shows what it waits for; reboot if that does not change",
            ),
        )
    if host.driver.installed is None:
        return _no_module(host)
    if key := signing.refused_key(host):
        summary = f"driver {host.driver.installed} is installed and not loaded: its key is not enrolled (Secure Boot)"
        evidence = f"/sys/module/nvidia is absent; {key[0]}"
        return Finding(summary, evidence, remedy=key[1], steps=signing.STEPS, otherwise=signing.BY_HAND)
    return Finding(
        f"driver {host.driver.installed} is installed and not loaded",
        evidence="/sys/module/nvidia is absent",
        remedy=Remedy(
            RepairAction.RELOAD_MODULE,
            "modprobe nvidia; journalctl -k -b | grep -e NVRM -e nvidia when it fails; reboot after an installation",
        ),
    )


def _no_module(host: HostFacts) -> Finding:
    """No driver at all; or one whose module is not there for this kernel, which is another cause."""
    absent = "/sys/module/nvidia is absent and modinfo finds no nvidia module"
    signs = signs_of_driver(host)
    if not signs:
        remedy = Remedy(RepairAction.UPGRADE, setup("--only", "driver"))
        return Finding("no NVIDIA driver is installed", evidence=absent, remedy=remedy)
    version, lead = installed_version(host), lead_package(host)
    by_runfile = host.driver.runfile and lead is None  # the plan refuses it: two owners of one driver break it
    finishes = Remedy(RepairAction.UPGRADE, setup("--only", "driver"), " finishes and builds it" if lead else "")
    return Finding(
        f"{f'driver {version}' if version else 'a driver'} is installed, and no module of it can be loaded by kernel "
        f"{host.kernel.release}",
        evidence="; ".join((absent, *_half_installed(host), *signs)),
        remedy=BY_RUNFILE if by_runfile else finishes,
    )


def _half_installed(host: HostFacts) -> tuple[str, ...]:
    """The package that was not configured tells most: often it is the one whose module did not build."""
    there = host.packages.installed
    half = sorted(n for n, p in there.items() if CORE.match(n) and not p.configured and p.status[1:2] != "c")
    return tuple(f"{name} {there[name].version} has status {there[name].status!r}" for name in half[:1])


@check(
    "drv.uvm-loaded",
    Severity.WARNING,
    title="nvidia_uvm is loaded",
    reads="/sys/module/nvidia_uvm",
    remedy=Remedy(
        RepairAction.RELOAD_MODULE, "modprobe nvidia-uvm; echo nvidia-uvm > /etc/modules-load.d/nvidia-uvm.conf"
    ),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def uvm_loaded(host: HostFacts, context: Context) -> CheckOutcome:
    """CUDA's memory module is not loaded; a container cannot load it."""
    if "nvidia_uvm" in host.kernel.modules or host.uvm_major is not None:
        return None
    return Finding(
        "nvidia_uvm is not loaded",
        evidence="/sys/module/nvidia_uvm is absent and /proc/devices has no nvidia-uvm",
        remedy=Remedy(
            RepairAction.RELOAD_MODULE, "modprobe nvidia-uvm; echo nvidia-uvm > /etc/modules-load.d/nvidia-uvm.conf"
        ),
    )


@check(
    "drv.version-running",
    Severity.WARNING,
    title="the running driver reports its version",
    reads="/sys/module/nvidia/version",
    remedy=Remedy(RepairAction.UPGRADE, "cat /proc/driver/nvidia/version; reinstall the driver when that is empty too"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def version_running(host: HostFacts, context: Context) -> CheckOutcome:
    """The running driver's version is not one of NVIDIA's."""
    loaded = host.driver.loaded or ""
    if driver_version(loaded) is not None:
        return None
    return Finding(
        "the running driver's version cannot be read",
        evidence=f"/sys/module/nvidia/version holds {loaded!r}",
        remedy=Remedy(
            RepairAction.UPGRADE, "cat /proc/driver/nvidia/version; reinstall the driver when that is empty too"
        ),
    )


@check(
    "drv.running-vs-installed",
    Severity.ERROR,
    title="the module in memory is the one on disk",
    reads="/sys/module/nvidia/version against modinfo -F version nvidia",
    remedy=Remedy(RepairAction.REBOOT, "reboot the host"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def running_vs_installed(host: HostFacts, context: Context) -> CheckOutcome:
    """The kernel still runs the driver from before an upgrade."""
    loaded, installed = host.driver.loaded, host.driver.installed
    if installed is None:
        return NotApplicable("modinfo names no version of nvidia (drv.dkms-next checks the files)")
    if loaded == installed:
        return None
    return Finding(
        f"driver {loaded} is loaded, {installed} is installed",
        evidence=f"/sys/module/nvidia/version holds {loaded}; modinfo -F version nvidia prints {installed}",
        remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it"),
    )


def library_versions(host: HostFacts) -> list[tuple[str, str]]:
    """(path, driver version) of the libraries that the loader finds first; those without a version in it aside."""
    found = (host.driver.libraries.get(so, ()) for so in ("libcuda.so.1", "libnvidia-ml.so.1"))
    paths = [own[0] for of_soname in found if (own := [path for path in of_soname if COMPAT not in path])]
    return [(path, v) for path in paths if (v := driver_version(path.rpartition("/")[2])) is not None]


@check(
    "drv.running-vs-userspace",
    Severity.ERROR,
    title="kernel module and libraries are one version",
    reads="/sys/module/nvidia/version against libcuda.so.1 and libnvidia-ml.so.1",
    remedy=Remedy(RepairAction.REBOOT, "reboot the host"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def running_vs_userspace(host: HostFacts, context: Context) -> CheckOutcome:
    """The libraries were upgraded under a running driver: Driver/library version mismatch."""
    versioned = library_versions(host)
    if not versioned:
        return NotApplicable("no driver library with a version in its name is on the loader's path")
    wrong = [(path, v) for path, v in versioned if v != host.driver.loaded]
    if not wrong:
        return None
    return Finding(
        f"driver {host.driver.loaded} is loaded, the libraries are {wrong[0][1]}",
        evidence=f"/sys/module/nvidia/version holds {host.driver.loaded}; "
        f"the loader finds {listing(p for p, _ in wrong)}",
        remedy=ONE_VERSION
        if host.driver.installed == host.driver.loaded
        else Remedy(
            RepairAction.REBOOT, "drain the node and reboot it; nvidia-smi and every new container fail until then"
        ),
    )


@check(
    "drv.rm-init",
    Severity.ERROR,
    title="the driver started every GPU",
    reads="the kernel log: RmInitAdapter",
    remedy=Remedy(
        RepairAction.REBOOT,
        "read the NVRM lines before it: wrong flavour, firmware setting, power; reboot once, then replace the GPU",
    ),
    needs=(needs.gpu, needs.host_driver, needs.kernel_log),
)
def rm_init(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver could not start a GPU."""
    lines = [x for x in host.driver.kernel_log if "RmInitAdapter failed" in x or "rm_init_adapter failed" in x]
    failed = since_loaded(host, lines)
    if not failed:
        return None
    return Finding(
        "the driver could not start a GPU",
        evidence=f"kernel log: {failed[-1].strip()}",
        remedy=Remedy(
            RepairAction.REBOOT,
            "journalctl -k -b | grep NVRM: the lines before it name the cause; reboot once, then replace the GPU",
        ),
        entities=pci(*in_lines(host, failed)),
    )


@check(
    "drv.modprobe-options",
    Severity.WARNING,
    title="the module's options on disk are those of the running module",
    reads="/etc/modprobe.d/* against /proc/driver/nvidia/params",
    remedy=Remedy(RepairAction.REBOOT, "reboot the host"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def modprobe_options(host: HostFacts, context: Context) -> CheckOutcome:
    """An option was written for the module and the running one does not have it."""
    known = [one for one in host.kernel.options if one.key in host.driver.params]
    if not known:
        return NotApplicable("no option in modprobe.d is one that /proc/driver/nvidia/params shows")
    differ = [one for one in known if _number(one.value) != _number(host.driver.params[one.key])]
    if not differ:
        return None
    key, value, path = differ[0].key, differ[0].value, differ[0].path
    return Finding(
        f"option {key} is {value} on disk and {host.driver.params[key]} in the running module",
        evidence=f"{path}: NVreg_{key}={value}; /proc/driver/nvidia/params: {key}: {host.driver.params[key]}",
        remedy=Remedy(
            RepairAction.REBOOT,
            "drain the node and reboot it; if that does not help, rebuild the initramfs and reboot again",
        ),
        entities=(place(path),),
    )


def _number(text: str) -> int | str:
    """438 for "438", "0666" and "0x1b6", as the kernel reads module parameters; other text as it is."""
    word = text.strip().strip('"')
    if not word.isascii() or len(word) > 20:
        return word
    for base in (0, 8):
        try:
            return int(word, base)
        except ValueError:
            continue
    return word
