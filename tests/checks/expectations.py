"""What the healthy host of hosts.py is expected to have, and hosts that differ from it: rows of test_checks.py."""

from __future__ import annotations

from dataclasses import replace

from gpunode.model.facts import HostFacts, OsFacts
from gpunode.model.packages import PackageFacts
from gpunode.model.smi import SmiFacts
from gpunode.model.spec import Expectation, parse_mig
from tests.checks import hosts as h

EXPECTED = Expectation(
    gpus=8, model=("H100 SXM5 80GB",), driver="595.91.07", flavour="open", cuda="13.2", toolkit="1.20.0",
    engines=("containerd=1.7.27", "docker"), handler="nvidia", default_runtime=("nvidia",), mig=parse_mig("all=off"),
    cdi=("containerd=on", "docker=on"), packages=("libnvidia-container1=1.20.0-1", f"nvidia-open={h.V}-1"),
    vbios=("2330=96.00.A5.00.03",), nics=("8x400",), nvswitches=4, numa=("0=8",), os="debian 12", kernel=h.KERNEL,
)  # fmt: skip
OTHER_GPU = replace(h.GPU, address="0000:61:00.0", device="27b8")
CUT = h.smi(h.seen(mig_mode="Enabled", mig_pending="Enabled", mig_profiles=("3g.40gb",)))
OTHER_VBIOS = h.smi(h.seen("board", vbios="96.00.A5.00.09"))

FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("expect.model", h.gpu(device="27b8"), "wanted H100 SXM5 80GB; /sys/bus/pci/devices: found L4"),
    ("expect.model", h.host(pci=(h.GPU, OTHER_GPU)), "found H100 SXM5 80GB, L4"),
    ("expect.model", h.host(pci=()), "found none"),
    ("expect.driver", h.driver(loaded="595.99.01"), "wanted 595.91.07; /sys/module/nvidia/version: found 595.99.01"),
    ("expect.driver", h.driver(loaded=None, installed=None), "found none"),
    ("expect.flavour", h.driver(loaded_flavour="proprietary"), "wanted open; /proc/driver/nvidia/version: found prop"),
    ("expect.cuda", h.smi(h.SEEN, cuda_version="12.8"), "wanted 13.2; nvidia-smi -q -x: found 12.8"),
    ("expect.toolkit", h.toolkit(version="1.17.8"), "wanted 1.20.0; nvidia-ctk --version: found 1.17.8"),
    ("expect.toolkit", h.toolkit(version=None), "found none"),
    ("expect.engines", h.containerd(version="2.1.9"), "found docker=28.5.2, containerd=2.1.9"),
    ("expect.engines", h.docker(active=False), "found containerd=1.7.27"),
    ("expect.handler", h.docker(handlers=("runc",)), "wanted nvidia; the running daemon: found docker: runc"),
    ("expect.default-runtime", h.containerd(effective_default="runc"), "found containerd=runc"),
    ("expect.cdi", h.docker(cdi=False), "wanted docker=on; the running daemon: found docker=off"),
    (
        "expect.packages",
        h.host(packages=h.packages(nvidia__open="580.95.05")),
        f"apt's database against expect.packages: nvidia-open: wanted {h.V}-1, found 580.95.05-1",
    ),
    (
        "expect.packages",
        h.host(packages=h.packages(nvidia__open="")),
        f"nvidia-open: wanted {h.V}-1, found none",
    ),
    ("expect.vbios", OTHER_VBIOS, "wanted 2330=96.00.A5.00.03; nvidia-smi -q -x: found 2330=96.00.A5.00.09"),
    ("expect.mig", CUT, "wanted all=off; nvidia-smi -L: found 3g.40gb"),
    ("expect.nics", h.port(state="DOWN"), "found 1 not active, 7x400"),
    ("expect.nics", h.port(rate="200 Gb/sec (2X NDR)"), "found 1x200, 7x400"),
    ("expect.nics", h.system(rdma=()), "wanted 8x400; /sys/class/infiniband: found none"),
    ("expect.nvswitches", h.host(pci=(h.GPU, *h.SWITCHES[:3])), "wanted 4; /sys/bus/pci/devices: found 3"),
    ("expect.numa", h.gpu(numa_node=1), "wanted 0=8; /sys/bus/pci/devices/*/numa_node: found 1=1"),
    ("expect.os", h.host(os=OsFacts("debian", "13")), "wanted debian 12; os-release: found debian 13"),
    ("expect.kernel", h.kernel(release="6.1.0-51-amd64"), "uname -r: found 6.1.0-51-amd64"),
)

NO_BUS = replace(h.host(pci=()), unread={"pci": "permission denied"})
# What nobody can read here is compared with nothing: a warning, with its reason and what lets the host say it.
UNSAID: tuple[tuple[str, HostFacts, str], ...] = (
    *((f"expect.{name}", NO_BUS, "pci was not read") for name in ("model", "nvswitches", "numa")),
    ("pci.expected-count", NO_BUS, "wanted 8; this host does not say: pci was not read"),
    ("expect.numa", h.gpu(numa_node=-1), "the firmware does not say"),
    ("expect.numa", h.gpu(numa_node=None), "the firmware does not say"),
    ("expect.flavour", h.driver(loaded_flavour=None), "which kernel modules these are"),
    ("expect.mig", h.driver(smi=SmiFacts(9, "no driver")), "did not list the GPUs"),
    ("expect.cuda", h.smi(h.SEEN), "does not say which CUDA"),
    ("expect.vbios", h.driver(smi=SmiFacts(9, "no driver")), "did not list the GPUs"),
    ("expect.cdi", h.docker(cdi=None), "docker did not say whether CDI is enabled"),
    ("expect.packages", h.host(packages=PackageFacts()), "no package manager"),
    ("expect.nics", h.host(system=None), "this recording does not have it"),
    ("expect.engines", h.containerd(version=None), "did not say its version"),
    ("expect.handler", h.docker(handlers=(), effective_default=None), "docker did not say which handlers"),
    ("expect.handler", h.host(runtimes=()), "no container engine runs"),
    ("expect.default-runtime", h.docker(effective_default=None), "did not say which runtime is its default"),
)
