"""Constructed healthy hosts with all that today's probe asks: so little is unknown that a pass says something.

nvidia-smi's answer has the tags of a real one (examples/hosts/debian12-ready); every reading is that of an idle GPU.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gpunode.facts.wire import decode
from tests.recorded import nodes
from tests.recorded.engines import ENGINES
from tests.recorded.more_hosts import MORE, OPEN_SET, UBUNTU2404
from tests.recorded.nouns import Driver, Engine, GpuModel, Recipe
from tests.recorded.sick import addresses, sick, smi_xml

V = "595.91.07"
READY = Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready" / "facts.txt"
H100 = GpuModel("2330", "GH100 [H100 SXM5 80GB]", 8, "10de:16c1", bar1_gib=128)
SWITCH = GpuModel("22a3", "GH100 [H100 NVSwitch]", 4, "10de:1796", "0x068000")
A100 = GpuModel("20b5", "GA100 [A100 PCIe 80GB]", 2, "10de:1533", bar1_gib=128)
L4 = GpuModel("27b8", "AD104GL [L4]", subsystem="10de:16ee", bar1_gib=32)
LAPTOP = GpuModel("28e0", "AD107M [GeForce RTX 4060 Max-Q / Mobile]", subsystem="1043:1c1e", class_code="0x030000",
                  bar1_gib=8)  # fmt: skip
SET = (*OPEN_SET, "nvidia-persistenced", "libcuda1", "libnvidia-ml1")
OF_TOOLKIT = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools",
              "libnvidia-container1")  # fmt: skip
NVIDIA = {"path": "nvidia-container-runtime", "args": []}
DAEMON = {"default-runtime": "nvidia", "live-restore": True, "runtimes": {"nvidia": NVIDIA}}
INFO = {
    "ServerVersion": "28.5.2",
    "DefaultRuntime": "nvidia",
    "Runtimes": {"nvidia": NVIDIA, "runc": {"path": "runc"}, "io.containerd.runc.v2": {"path": "runc"}},
    "CgroupDriver": "systemd",
    "LiveRestoreEnabled": True,
    "ContainersRunning": 0,
}
CTK_PATH, CDI_PATH = "/etc/nvidia-container-runtime/config.toml", "/var/run/cdi/nvidia.yaml"
CTK = '[nvidia-container-cli]\nldconfig = "@/sbin/ldconfig.real"\n\n[nvidia-container-runtime]\nmode = "auto"\n'
PERSISTENCED = ("nvidia-persistenced.service", 800, "nvidia-persiste", "/usr/bin/nvidia-persistenced --verbose")
CHRONY = ("chrony.service", 801, "chronyd", "/usr/sbin/chronyd")
FABRIC = ("nvidia-fabricmanager.service", 802, "nv-fabricmanage",
          "/usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg")  # fmt: skip
TEMPERATURES = """\t\t<temperature>
\t\t\t<gpu_temp>31 C</gpu_temp>
\t\t\t<gpu_temp_tlimit>56 C</gpu_temp_tlimit>
\t\t\t<gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>
\t\t\t<gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>
"""
COMPILER = "x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0, GNU ld (GNU Binutils for Ubuntu) 2.42"
PARAMS = 'DeviceFileMode: 438\nEnableGpuFirmware: 18\nExcludedGpus: ""\n'


def whole(recipe: Recipe, name: str, mib: int, more: Mapping[str, str] | None = None, /, **tags: str) -> Recipe:
    """`recipe` with a working driver and toolkit; `more` sections, and `tags` of nvidia-smi's answer that differ."""
    seen = sick(replace(recipe, toolkit="1.20.0", driver=Driver(V, "open", SET)), log=_LOADED)
    model, kernel = recipe.models[0], recipe.system.kernel
    engine = replace(recipe.engine, units=(*recipe.engine.units, PERSISTENCED, CHRONY))
    packages = {"dkms": "3.0.11-1ubuntu13", "gcc": "4:13.2.0-7ubuntu1", "gcc-13": "13.3.0-6ubuntu2~24.04",
                f"linux-headers-{kernel}": "1", "linux-headers-generic": "1",
                **dict.fromkeys(OF_TOOLKIT, "1.20.0-1")}  # fmt: skip
    sections = {**dict(seen.sections), **_machine(recipe), **dict(recipe.sections), **(more or {})}
    return replace(
        seen,
        smi=(smi(model, name, mib, tags), 0),
        files=(*recipe.files, (CTK_PATH, CTK), (CDI_PATH, cdi(model.count))),
        packages=(*recipe.packages, *(f"{package}={version}" for package, version in packages.items())),
        held=(*SET, *OF_TOOLKIT, *recipe.held),
        identity=(*recipe.identity, "cgroup=v2"),
        sections=tuple(sections.items()),
        engine=engine,
    )


def smi(model: GpuModel, name: str, mib: int, tags: Mapping[str, str]) -> str:
    """The whole answer of nvidia-smi, with so many GPUs like the one of debian12-ready, but for `tags`."""
    found = re.search(r"\t<gpu id=.*</gpu>\n", decode(READY.read_bytes()).text("smi"), re.DOTALL)
    assert found
    return smi_xml(V, "13.2", "".join(_gpu(found.group(), a, {"product_name": name, **tags}, mib)
                                      for a in addresses(model)))  # fmt: skip


def _gpu(text: str, address: str, tags: Mapping[str, str], mib: int) -> str:
    text = text.replace("00000000:3B:00.0", f"0000{address.upper()}").replace("23034 MiB", f"{mib} MiB")
    text = re.sub(r"GPU-[0-9a-f-]{36}", uuid(address), text)
    text = re.sub(r"\t\t<temperature>\n.*?(?=\t\t</temperature>)", TEMPERATURES, text, flags=re.DOTALL)
    for tag, value in tags.items():
        text, count = re.subn(rf"<{tag}>[^<]*</{tag}>", f"<{tag}>{value}</{tag}>", text)
        assert count, tag
    return text


def uuid(address: str) -> str:
    return f"GPU-00000000-0000-4000-8000-0000000000{address[5:7]}"


def cdi(gpus: int, instances: int = 0) -> str:
    """As nvidia-ctk writes it, shortened; `instances` are those of MIG on each GPU."""
    parts = [f":{i}" for i in range(instances)] or [""]
    nodes_of = {**{f"{n}{part}": [n] for n in range(gpus) for part in parts}, "all": list(range(gpus))}
    devices = "".join(
        f'- name: "{name}"\n  containerEdits:\n    deviceNodes:\n'
        + "".join(f"    - path: /dev/nvidia{n}\n" for n in numbers)
        for name, numbers in nodes_of.items()
    )
    library = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{V}"
    mounts = f"  mounts:\n  - hostPath: {library}\n    containerPath: {library}\n"
    return f"cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n{devices}containerEdits:\n{mounts}"


_LOADED = f"[   12.100000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {V}  Release Build\n"


def _machine(recipe: Recipe) -> Mapping[str, str]:
    """Sections of a machine that has run for ten days with all in order."""
    kernel, gpus = recipe.system.kernel, addresses(recipe.models[0])
    return {
        "blacklist": "".join(
            f"/etc/modprobe.d/gpunode-nouveau.conf:{line}\n"
            for line in ("blacklist nouveau", "blacklist nova_core", "options nouveau modeset=0")
        ),
        "cdi": f"{CDI_PATH}\n",
        "dev_char": "".join(f"195:{n}\n" for n in (*range(len(gpus)), 255)) + "511:0\n",
        "dkms": f"nvidia/{V}, {kernel}, x86_64: installed\n",
        "driver_params": PARAMS,
        "kernel_version": f"Linux version {kernel} (buildd@lcy02) ({COMPILER}) #1 SMP PREEMPT_DYNAMIC\n",
        "kernel_state": "uptime=912345.10\ntaint=12288\npstore_read=1\nedac=0 0\n"
        + "".join(f"aer={address} 0 0 0\n" for address in gpus),
        "system": "uptime=912345\nMemTotal=1056444716\nMemAvailable=1006444716\nswaps=read\nthreads=2140\nboot=read\n"
        f"initramfs={kernel}\nenvs=read\n",
        "room": "mount=/ rw\nfiles=2273\t0\t9223372036854775807\nlimit=4194304\n"
        "/ 4096 400000000 460000000 110000000 117000000\n"
        "/boot 4096 300000 500000 65000 65536\n/var 4096 400000000 460000000 110000000 117000000\n",
    }


def _links(model: GpuModel, per_gpu: int) -> Mapping[str, str]:
    """`nvidia-smi nvlink -s` and `-e`."""
    heads = [f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: {uuid(address)})\n" for n, address in enumerate(addresses(model))]
    up = "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(per_gpu))
    errors = "".join(
        f"\t Link {link}: {kind} Errors: 0\n" for link in range(per_gpu) for kind in ("Replay", "Recovery", "CRC")
    )
    return {"smi_links": "".join(h + up for h in heads), "smi_link_errors": "".join(h + errors for h in heads)}


def _ports(gpus: list[str]) -> str:
    """A port of InfiniBand beside each GPU."""
    lines = [
        f"rdma=mlx5_{n}|1|0000:{0x30 + n:x}:00.0|InfiniBand|4: ACTIVE|5: LinkUp|400 Gb/sec (4X NDR)"
        "|MT_0000000838|0|-|-\n"
        for n in range(len(gpus))
    ]
    return "".join((*lines, *(f"iommu={address} identity\n" for address in gpus), "memlock=dockerd unlimited\n"))


def _docker(slug: str, title: str, models: tuple[GpuModel, ...], **more: object) -> Recipe:
    recipe = Recipe(slug, title, UBUNTU2404, models, docker="28.5.2", daemon_json=json.dumps(DAEMON, indent=4))
    sections = (("docker:info", f"{json.dumps(INFO)}\n"),)
    return replace(recipe, sections=sections, **more)  # type: ignore[arg-type]


def _hgx() -> Recipe:
    recipe = _docker(
        "ubuntu2404-hgx-h100-ready",
        "8 × H100 SXM5 with 4 NVSwitches, all set up: nothing is left to do",
        (H100, SWITCH),
        packages=(f"nvidia-fabricmanager={V}-1",),
        held=("nvidia-fabricmanager",),
        engine=Engine(units=(FABRIC,)),
        modules=("nvidia_peermem",),
    )
    gpus = addresses(H100)
    system = _machine(recipe)["system"] + _ports(gpus)
    return whole(recipe, "NVIDIA H100 80GB HBM3", 81559, {**_links(H100, 18), "system": system},
                 state="Completed", status="Success", current_mig="Disabled", pending_mig="Disabled")  # fmt: skip


def _node() -> Recipe:
    recipe = next(one for one in nodes.NODES if one.slug == "ubuntu2404-node-l40s")
    machine = _machine(recipe)
    node = replace(
        recipe,
        slug="ubuntu2404-node-l40s-ready",
        title="a node of kubeadm's whose 2 × L40S are offered to pods: nothing is left to do",
        containerd="2.3.4",
        sections=tuple((name, text) for name, text in recipe.sections if name not in machine),
    )
    return whole(node, "NVIDIA L40S", 46068, {"containerd:1100:runc": "runc version 1.4.2\n"})


# They are among the sample hosts: a healthy one of each kind that has most to be checked.
WHOLE: tuple[Recipe, ...] = (_hgx(), _node())


def _mig() -> Recipe:
    name, halves = "NVIDIA A100 80GB PCIe", range(2)
    listed, devices = "", ""
    for n, address in enumerate(addresses(A100)):
        listed += f"GPU {n}: {name} (UUID: {uuid(address)})\n"
        listed += "".join(f"  MIG 3g.40gb     Device  {i}: (UUID: MIG-{n}{i}00000-0000-5000-8000-000000000000)\n"
                          for i in halves)  # fmt: skip
    for minor in (1, 2, 12, 13, 21, 22, 147, 148, 156, 157):  # the monitor's, and those of each instance
        devices += f"cr--r--r-- 1 0 0 236, {minor:3} Nov 23 08:00 /dev/nvidia-caps/nvidia-cap{minor}\n"
    recipe = _docker("mig-a100", "2 × A100, each cut in two", (A100,))
    seen = whole(recipe, name, 81920, {"smi_list": listed}, current_mig="Enabled", pending_mig="Enabled",
                 mig_devices="<mig_device></mig_device>" * len(halves))  # fmt: skip
    sections = dict(seen.sections)
    sections["devices"] += devices
    files = {**dict(seen.files), CDI_PATH: cdi(A100.count, len(halves))}
    return replace(seen, sections=tuple(sections.items()), files=tuple(files.items()))


def _k3s() -> Recipe:
    """It finds the toolkit by itself; its default is said in its own configuration."""
    recipe = next(one for one in ENGINES if one.slug == "ubuntu2404-k3s-l4")
    path, text = "/etc/rancher/k3s/config.yaml", dict(recipe.engine.files)["/etc/rancher/k3s/config.yaml"]
    runc = {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    cri = {
        "containerd": {"defaultRuntimeName": "nvidia", "runtimes": {"runc": runc, "nvidia": runc}},
        "enableCDI": True,
    }
    files = {**dict(recipe.engine.files), path: f"{text}default-runtime: nvidia\n"}
    sections = {**dict(recipe.engine.sections), "containerd:910:cri": f"source=python3\n{json.dumps(cri)}\n"}
    engine = replace(recipe.engine, files=tuple(files.items()), sections=tuple(sections.items()))
    return whole(replace(recipe, engine=engine), "NVIDIA L4", 23034)


def _without_bus(recipe: Recipe) -> Recipe:
    """docker and toolkit where the driver is not this system's: in WSL, and in an image that is being built."""
    packages = dict.fromkeys(OF_TOOLKIT, "1.20.0-1")
    docker = replace(recipe, toolkit="1.20.0", daemon_json=json.dumps(DAEMON, indent=4), held=OF_TOOLKIT,
                     packages=tuple(f"{name}={version}" for name, version in packages.items()))  # fmt: skip
    info = () if recipe.image else (("docker:info", f"{json.dumps(INFO)}\n"),)
    return replace(docker, sections=(*recipe.sections, *info), files=(*recipe.files, (CTK_PATH, CTK)))


def healthy() -> Iterator[Recipe]:
    """Further kinds of healthy hosts, for tests alone."""
    yield whole(_docker("docker-l4", "a docker server", (L4,)), "NVIDIA L4", 23034)
    yield whole(_docker("laptop", "a laptop with docker", (LAPTOP,)), "NVIDIA GeForce RTX 4060 Laptop GPU", 8188,
                current_ecc="N/A", pending_ecc="N/A", persistence_mode="Disabled")  # fmt: skip
    yield _mig()
    yield whole(next(one for one in ENGINES if one.slug == "ubuntu2404-podman-l4"), "NVIDIA L4", 23034)
    yield _k3s()
    yield _without_bus(next(one for one in MORE if one.slug == "ubuntu2404-wsl2"))
    yield _without_bus(
        Recipe("image", "an image with docker and the toolkit", UBUNTU2404, (), docker="28.5.2", image=True)
    )
