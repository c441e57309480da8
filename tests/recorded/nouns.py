"""What a constructed host is made of."""

from __future__ import annotations

from dataclasses import dataclass

# An unpublished key is asked for; this fingerprint is made up and stands for the one that a user would give.
TRUST = ("--trust-key", "0123456789ABCDEF0123456789ABCDEF01234567")

# The network functions through which HGX B200 and B300 boards have their NVLink switches managed.
HGX_NVLINK5 = tuple(f"sw_mng=0000:{bus}:00.0" for bus in ("05", "06", "07", "08"))


@dataclass(frozen=True)
class System:
    """A distribution as its own files name it."""

    os_release: str
    kernel: str
    manager: str  # one of packages.registry.BACKENDS; "": none of them
    kernel_packages: tuple[str, ...]  # name=version of what the distribution installs with its kernel
    initramfs: str  # "": the image has it
    next_kernel: str | None = None  # installed, newer than the running one
    machine: str = "x86_64"


@dataclass(frozen=True)
class GpuModel:
    device: str
    name: str  # as lspci prints it
    count: int = 1
    subsystem: str = "10de:0000"
    class_code: str = "0x030200"
    driver: str = "-"
    bar1_gib: int = 0
    config: str = ""  # its config space as hex, where the probe reads all of it


@dataclass(frozen=True)
class Driver:
    """One that is installed and loaded."""

    version: str
    flavour: str  # "open" | "proprietary"
    packages: tuple[str, ...]  # at that version; () for one that no package brought
    loaded: bool = True


@dataclass(frozen=True)
class Engine:
    """One in addition to docker and the distribution's own containerd, in the probe's format."""

    units: tuple[tuple[str, int, str, str], ...] = ()  # running: (unit, pid, comm, command line)
    stopped: tuple[tuple[str, str], ...] = ()  # (unit, command line) of those that are installed and failed
    children: tuple[tuple[int, str, int, str, str], ...] = ()  # (pid, comm, parent, unit it is in, command line)
    sections: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    slug: str
    title: str  # the README's first line
    system: System
    models: tuple[GpuModel, ...]
    docker: str | None = None
    daemon_json: str | None = None
    containerd: str | None = None
    containerd_config: str | None = None
    kubelet: bool = False
    secure_boot: bool | None = False
    modules: tuple[str, ...] = ()
    driver: Driver | None = None
    marks: tuple[str, ...] = ()  # lines of the driver_marks section: "runfile=/usr/bin/nvidia-uninstall"
    toolkit: str | None = None  # version of the container toolkit that is there
    packages: tuple[str, ...] = ()  # name=version of further ones
    held: tuple[str, ...] = ()  # names that apt keeps back
    files: tuple[tuple[str, str], ...] = ()  # repository lists: (path, text)
    engine: Engine = Engine()
    archives: str = ""  # live entries of apt's lists
    smi: tuple[str, int] | None = None  # what nvidia-smi -q -x prints, and its exit code; None: it was not run
    sections: tuple[tuple[str, str], ...] = ()  # further ones, in the probe's format
    identity: tuple[str, ...] = ()  # further lines of the identity section: "image_based=ostree"
    image: bool = False  # it is being built, in a chroot or a container, and does not run
    options: tuple[str, ...] = ()  # what gpunode plan is asked with


def os_release(name: str, **values: str) -> str:
    """/etc/os-release of a system that calls itself `name`."""
    lines = {"PRETTY_NAME": name, **values}
    return "".join(f'{key}="{value}"\n' for key, value in lines.items())


def debian(version: str, codename: str, kernel: str) -> System:
    number = kernel.removesuffix("-amd64")
    return System(
        os_release(
            f"Debian GNU/Linux {version} ({codename})", ID="debian", VERSION_ID=version, VERSION_CODENAME=codename
        ),
        kernel,
        "apt",
        (f"linux-image-{kernel}={number}-1", f"linux-image-amd64={number}-1"),
        "update-initramfs",
    )


def ubuntu(version: str, codename: str, kernel: str, next_kernel: str | None = None) -> System:
    images = [f"linux-image-{k}={k.removesuffix('-generic')}.1" for k in (kernel, next_kernel) if k]
    return System(
        os_release(
            f"Ubuntu {version} LTS", ID="ubuntu", ID_LIKE="debian", VERSION_ID=version, VERSION_CODENAME=codename
        ),
        kernel,
        "apt",
        (*images, f"linux-image-generic={version}.1", f"linux-generic={version}.1"),
        "update-initramfs",
        next_kernel,
    )


def enterprise(id_: str, name: str, version: str, kernel: str) -> System:
    major = version.partition(".")[0]
    plain = kernel.removesuffix(".x86_64")
    return System(
        os_release(
            f"{name} {version}",
            ID=id_,
            ID_LIKE="rhel centos fedora",
            VERSION_ID=version,
            PLATFORM_ID=f"platform:el{major}",
        ),
        kernel,
        "dnf",
        (f"kernel={plain.removeprefix('kernel-')}", f"kernel-core={plain}"),
        "dracut",
    )


def rpm_system(
    id_: str,
    name: str,
    version: str,
    kernel: str,
    manager: str = "dnf",
    kernel_package: str = "kernel-core",
    machine: str = "x86_64",
) -> System:
    """Any other system with rpm's database."""
    text = os_release(f"{name} {version}".strip(), ID=id_, VERSION_ID=version)
    plain = kernel.removesuffix(f".{machine}").removesuffix("-default")
    return System(text, kernel, manager, (f"{kernel_package}={plain}",), "dracut", machine=machine)
