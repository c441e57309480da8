"""Writes the constructed hosts of examples/hosts: `python -m tests.recorded.construct`.

Each is what the probe would have sent from such a machine, put together from hosts.py; none was a real machine, and
each README says so. A host that was really recorded has no recipe here and is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpunode.facts.wire import Section, Sections, encode, file_facts
from gpunode.model.files import FileFacts
from tests.recorded.hosts import RECIPES
from tests.recorded.nouns import GpuModel, Recipe

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
BAR1_START = 0x200000000000
UNITS = ("docker.service", "docker.socket", "containerd.service", "kubelet.service", "nvidia-persistenced.service")
# What a host without a driver, without repositories of NVIDIA and without containers has no output for.
EMPTY = (
    "driver_modules",
    "driver_marks",
    "blacklist",
    "keyrings",
    "package_lock",
    "auto_upgrade",
    "apt_archives",
    "shims",
    "toolkit",
    "devices",
    "dev_char",
    "proc_devices",
    "sources",
    "cdi",
    "nvidia_ko",
    "ldconfig",
    "kernel_log",
)
# Not asked while an image is being built: they are of the machine that builds it.
OF_THE_MACHINE = ("pci", "lspci", "modules", "cmdline", "security")
MANAGERS = {
    "apt": ("apt-get", "dpkg-query"),
    "dnf": ("dnf", "rpm"),
    "dnf5": ("dnf", "dnf5", "rpm"),
    "yum": ("yum", "rpm"),
    "zypper": ("zypper", "rpm"),
    "tdnf": ("tdnf", "rpm"),
    "pacman": ("pacman",),
    "": (),
}
LISTINGS = {"apt": "dpkg", "pacman": "pacman", "": ""}  # of the others: rpm
# NVIDIA's nvidia-kmod-common brings it with the driver.
OMITTING = "/usr/lib/dracut/dracut.conf.d/99-nvidia.conf"
_DRACUT = ("", f'{OMITTING}:omit_drivers+=" nvidia nvidia-drm nvidia-modeset nvidia-uvm "\n')
DOCKERD, CONTAINERD = "/usr/bin/dockerd", "/usr/bin/containerd"
DOCKER_PID, CONTAINERD_PID, KUBELET_PID = 1201, 1100, 1400


def stream(recipe: Recipe) -> bytes:
    """The recording of one host."""
    unasked = OF_THE_MACHINE if recipe.image else ()
    commands = {name: Section("" if name in unasked else text) for name, text in _commands(recipe)}
    loaded = recipe.driver is not None and recipe.driver.loaded
    why = "a GPU is suspended and would be woken" if loaded else "the nvidia module is not loaded"
    why = "an image is being built" if recipe.image else why
    commands["smi"] = Section(*recipe.smi) if recipe.smi else Section(rc=None, unread=why)
    for tool in (
        "dkms",
        *(() if recipe.toolkit else ("ctk_version",)),
        *(t for t in ("dpkg", "rpm", "pacman") if t != _listing(recipe)),
    ):
        commands[tool] = Section(rc=127)
    if recipe.driver is None:
        commands["modinfo"] = Section("modinfo: ERROR: Module nvidia not found.\n", 1)
    return encode(Sections(commands, _files(recipe)))


def readme(recipe: Recipe) -> str:
    return (
        f"# {recipe.slug}: {recipe.title}\n\n"
        "Constructed: put together from published facts about such machines (tests/recorded), not recorded on one.\n\n"
        f"    {' '.join(('gpunode plan --recorded', f'examples/hosts/{recipe.slug}', *recipe.options))}\n"
    )


def main() -> None:
    for recipe in RECIPES:
        directory = EXAMPLES / recipe.slug
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "facts.txt").write_bytes(stream(recipe))
        (directory / "README.md").write_text(readme(recipe), encoding="utf-8")


def _commands(recipe: Recipe) -> Iterator[tuple[str, str]]:
    system = recipe.system
    boot_id = hashlib.sha256(recipe.slug.encode()).hexdigest()
    yield (
        "identity",
        f"uid=0\nkernel={'-' if recipe.image else system.kernel}\nmachine={system.machine}\nhostname={recipe.slug}\n"
        f"boot_id={boot_id[:8]}-{boot_id[8:12]}-4{boot_id[13:16]}-8{boot_id[17:20]}-{boot_id[20:32]}\n"
        f"init={'chroot' if recipe.image else 'systemd'}\n" + "".join(f"{line}\n" for line in recipe.identity),
    )
    yield "os", system.os_release
    yield "pci", "".join(line for line, _ in _pci(recipe))
    yield "lspci", "".join(line for _, line in _pci(recipe))
    yield "modules", "".join(f"{name}\n" for name in ("overlay", "br_netfilter", *recipe.modules, *_modules(recipe)))
    yield "cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{system.kernel} root=/dev/sda2 ro quiet\n"
    kernels = [kernel for kernel in (system.kernel, system.next_kernel) if kernel]
    yield "kernel_trees", "".join(f"{kernel}|1|{int(recipe.driver is not None)}\n" for kernel in kernels)
    yield "next_boot", "GRUB_DEFAULT=0\n" if system.manager == "apt" else f"saved_entry=0f-{system.kernel}\n"
    secure = f"secure_boot={int(recipe.secure_boot)}\n" if recipe.secure_boot is not None else ""
    lockdown = "none [integrity] confidentiality" if recipe.secure_boot else "[none] integrity confidentiality"
    yield (
        "security",
        f"uefi=1\n{secure}lockdown={lockdown}\nselinux={'1' if system.manager in ('dnf', 'dnf5', 'yum') else '-'}\n",
    )
    yield (
        "tools",
        "".join(f"/usr/bin/{name}\n" for name in _tools(recipe)) + "".join(f"{path}\n" for path in recipe.engine.tools),
    )
    if system.initramfs == "dracut":
        yield "dracut", _DRACUT[recipe.driver is not None and system.manager != "apt"]
        yield "initramfs_images", f"{system.kernel}|/boot/initramfs-{system.kernel}.img|\n"
    yield from _packages(recipe)
    yield from _daemons(recipe)
    sections = dict(_driver(recipe))
    sections |= {"apt_archives": recipe.archives} if recipe.archives else {}
    sections |= {"sources": "".join(f"{path}\n" for path, _ in recipe.files)} if recipe.files else {}
    if recipe.toolkit:
        programs = ("nvidia-container-runtime", "nvidia-container-runtime-hook", "nvidia-ctk")
        sections |= {"toolkit": "".join(f"{name}=/usr/bin/{name}\n" for name in programs)}
        sections |= {"ctk_version": f"NVIDIA Container Toolkit CLI version {recipe.toolkit}\n"}
    sections |= dict(recipe.sections)
    yield from sections.items()
    for name in EMPTY:
        if name not in sections and name not in dict(recipe.engine.sections):
            yield name, ""


def _modules(recipe: Recipe) -> tuple[str, ...]:
    return ("nvidia", "nvidia_uvm") if recipe.driver and recipe.driver.loaded else ()


def _driver(recipe: Recipe) -> Iterator[tuple[str, str]]:
    if recipe.marks:
        yield "driver_marks", "".join(f"{mark}\n" for mark in recipe.marks)
    driver = recipe.driver
    if driver is None:
        return
    path = f"/lib/modules/{recipe.system.kernel}/updates/dkms/nvidia.ko"
    words = "Dual MIT/GPL" if driver.flavour == "open" else "NVIDIA"
    yield "modinfo", f"filename:       {path}\nversion:        {driver.version}\nlicense:        {words}\n"
    yield "nvidia_ko", f"{path}\n"
    if driver.loaded:
        opened = "Open Kernel Module for " if driver.flavour == "open" else ""
        yield "driver_modules", f"nvidia {driver.version} live 4\nnvidia_uvm - live 0\n"
        yield (
            "driver_version",
            f"NVRM version: NVIDIA UNIX {opened}{recipe.system.machine} Kernel Module  "
            f"{driver.version}  Release Build\n",
        )
        yield "busy", ""


def _pci(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """(line of the pci section, line of lspci) for each function, on buses 0x19, 0x1a, ...; sound is function 1."""
    bus = 0x18
    for model in recipe.models:
        sound = model.class_code == "0x040300"
        for _ in range(model.count):
            bus += not sound
            address = f"0000:{bus:02x}:00.{int(sound)}"
            yield _pci_line(_bound(model, recipe), address), _lspci_line(model, address)


def _bound(model: GpuModel, recipe: Recipe) -> GpuModel:
    return replace(model, driver="nvidia") if recipe.driver and recipe.driver.loaded else model


def _listing(recipe: Recipe) -> str:
    return LISTINGS.get(recipe.system.manager, "rpm")


def _pci_line(model: GpuModel, address: str) -> str:
    vendor, device = (f"0x{part}" for part in model.subsystem.split(":"))
    head = model.config or f"de10{model.device[2:]}{model.device[:2]}"
    bar1 = (
        f"0x0000200000000000 0x{0x200000000000 + (model.bar1_gib << 30) - 1:016x} 0x000000000014220c"
        if model.bar1_gib
        else "-"
    )
    fields = (address, "0x10de", model.class_code, f"0x{model.device}", vendor, device, "16", "16",
              "16.0 GT/s PCIe", "16.0 GT/s PCIe", "0", "active", model.driver, head, bar1)  # fmt: skip
    return "|".join(fields) + "\n"


def _lspci_line(model: GpuModel, address: str) -> str:
    kinds = {
        "0x030000": "VGA compatible controller",
        "0x030200": "3D controller",
        "0x068000": "Bridge",
        "0x040300": "Audio device",
    }
    kind = f"{kinds[model.class_code]} [{model.class_code[2:6]}]"
    return f"{address} {kind}: NVIDIA Corporation {model.name} [10de:{model.device}] (rev a1)\n"


def _tools(recipe: Recipe) -> Iterator[str]:
    yield from MANAGERS[recipe.system.manager]
    yield from filter(None, (recipe.system.initramfs, "systemctl", "python3", "curl"))
    yield from ("docker", "dockerd") if recipe.docker else ()
    yield from ("containerd", "ctr") if recipe.docker or recipe.containerd else ()


def _packages(recipe: Recipe) -> Iterator[tuple[str, str]]:
    named = dict(package.split("=", 1) for package in recipe.system.kernel_packages)
    named |= {"docker-ce": f"5:{recipe.docker}-1"} if recipe.docker else {}
    named |= {"containerd.io": f"{recipe.containerd}-1"} if recipe.containerd else {}
    if recipe.driver:
        named |= dict.fromkeys(recipe.driver.packages, f"{recipe.driver.version}-1")
    named |= dict(package.split("=", 1) for package in recipe.packages)
    machine = recipe.system.machine
    if recipe.system.manager == "apt":
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
        states = dict.fromkeys(named, "ii") | dict.fromkeys(recipe.held, "hi")
        yield "dpkg", "".join(f"{name}\t{version}\t{machine}\t{states[name]} \n" for name, version in named.items())
    elif not recipe.system.manager:
        return
    elif recipe.system.manager == "pacman":
        yield "pacman", "".join(f"{name} {version}\n" for name, version in named.items())
    else:
        yield "rpm", "".join(f"{name}\t{version}\t{machine}\n" for name, version in named.items())


def _daemons(recipe: Recipe) -> Iterator[tuple[str, str]]:
    running = {}
    if recipe.docker:
        yield "docker", f"config=/etc/docker/daemon.json\nsocket=/run/docker.sock\nbinary={DOCKERD}\n"
    if recipe.docker and not recipe.image:
        running["docker.service"] = (
            DOCKER_PID,
            "dockerd",
            f"{DOCKERD} -H fd:// --containerd=/run/containerd/containerd.sock",
        )
        yield "docker:info", _docker_info(recipe)
    if recipe.containerd:
        running["containerd.service"] = (CONTAINERD_PID, "containerd", CONTAINERD)
        yield f"containerd:{CONTAINERD_PID}:files", "/etc/containerd/config.toml\n"
        yield (
            f"containerd:{CONTAINERD_PID}:version",
            f"containerd github.com/containerd/containerd {recipe.containerd} 0\n",
        )
        yield f"containerd:{CONTAINERD_PID}:dump", recipe.containerd_config or "version = 2\n"
        yield f"containerd:{CONTAINERD_PID}:cri", f"source=python3\n{_cri(recipe)}"
        yield "sockets", f"containerd:{CONTAINERD_PID} /run/containerd/containerd.sock\n"
    if recipe.kubelet:
        running["kubelet.service"] = (KUBELET_PID, "kubelet", "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml")
        yield (
            "kubernetes",
            (
                "mark=/etc/kubernetes/kubelet.conf\nrunning=1\nconfig=/var/lib/kubelet/config.yaml\ncgroupDriver=systemd\n"
            ),
        )
    running |= {unit: (pid, comm, command) for unit, pid, comm, command in recipe.engine.units}
    children = recipe.engine.children
    listed = [*((pid, comm) for pid, comm, _ in running.values()), *((pid, comm) for pid, comm, *_ in children)]
    yield "processes", "".join(f"{pid} {comm}\n" for pid, comm in listed)
    yield from recipe.engine.sections
    parents = [(pid, comm, 1, unit, command) for unit, (pid, comm, command) in running.items()]
    for pid, comm, parent, unit, command in (*parents, *children):
        arguments = "".join(f"arg={word}\n" for word in command.split())
        yield (
            f"process:{pid}",
            f"comm={comm}\nppid={parent}\nexe={command.split()[0]}\ncgroup=/system.slice/{unit}\n{arguments}",
        )
    failed = dict(recipe.engine.stopped)
    more = [unit for unit, *_ in recipe.engine.units if unit not in UNITS]
    units = [_unit(unit, running.get(unit)) for unit in (*UNITS, *more) if unit not in failed]
    yield "services", "\n".join((*units, *(_stopped(unit, command) for unit, command in failed.items())))


def _stopped(name: str, command: str) -> str:
    return (
        f"Id={name}\nLoadState=loaded\nActiveState=failed\nSubState=failed\nUnitFileState=enabled\nNRestarts=5\n"
        f"ExecStart={{ path={command.split()[0]} ; argv[]={command} ; ignore_errors=no }}\n"
    )


def _unit(name: str, running: tuple[int, str, str] | None) -> str:
    if running is None:
        return f"Id={name}\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n"
    pid, _, command = running
    return (
        f"Id={name}\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID={pid}\nNRestarts=0\n"
        f"ExecStart={{ path={command.split()[0]} ; argv[]={command} ; ignore_errors=no }}\n"
    )


def _docker_info(recipe: Recipe) -> str:
    info = {
        "ServerVersion": recipe.docker,
        "DefaultRuntime": "runc",
        "Runtimes": {"io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"}},
        "CgroupDriver": "systemd",
        "LiveRestoreEnabled": "live-restore" in (recipe.daemon_json or ""),
        "ContainersRunning": 3 if recipe.daemon_json else 0,
    }
    return json.dumps(info) + "\n"


def _cri(recipe: Recipe) -> str:
    systemd = "SystemdCgroup = true" in (recipe.containerd_config or "")
    runc = {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": systemd}}
    config = {
        "containerd": {"defaultRuntimeName": "runc", "runtimes": {"runc": runc}},
        "enableCDI": (recipe.containerd or "").startswith("2."),
    }
    return json.dumps(config) + "\n"


def _files(recipe: Recipe) -> dict[str, FileFacts]:
    texts = {
        "/etc/docker/daemon.json": recipe.daemon_json,
        "/etc/containerd/config.toml": recipe.containerd_config,
        "/etc/nvidia-container-runtime/config.toml": None,
        "/etc/modprobe.d/gpunode-nouveau.conf": None,
        "/run/reboot-required": None,
        **dict(recipe.files),
        **dict(recipe.engine.files),
    }
    return {path: FileFacts(path) if text is None else file_facts(path, text) for path, text in texts.items()}


if __name__ == "__main__":
    main()
