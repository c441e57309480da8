"""The plan's first lines: the host in one, the driver and the reason for it below."""

from __future__ import annotations

from collections import Counter

from gpunode.catalog.load import Catalog
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.planner.driver.select import DriverChoice


def host_line(host: HostFacts, catalog: Catalog) -> str:
    """ "gpu07   Ubuntu 24.04 · Linux 6.8.0-51-generic · 8 × H100 SXM5 80GB, 4 × NVSwitch · docker 28.5.2" """
    cards = Counter(catalog.card(gpu.device).name for gpu in host.gpus)
    hardware = [f"{n} × {name}" for name, n in cards.items()]
    switches = len(catalog.nvswitches(host))
    hardware += [f"{switches} × NVSwitch"] if switches else []
    distro = catalog.distro(host.os)
    words = [
        distro.name if distro else host.os.pretty_name or host.os.id,
        f"Linux {host.kernel.release}",
        ", ".join(hardware) or "no NVIDIA card",
        ", ".join(_engine(r) for r in host.runtimes) or "no container engine",
    ]
    return f"{host.hostname}   {' · '.join(words)}"


def driver_lines(choice: DriverChoice | None, catalog: Catalog) -> tuple[str, ...]:
    if choice is None:
        return ()
    branch = catalog.branch(choice.branch)
    newest = f"{branch.latest} or newer" if branch and branch.latest and choice.source == "cuda" else str(choice.branch)
    if choice.rolling:
        newest = "newest"
    version = choice.version or newest
    stays = " (installed, stays)" if choice.kept else ""
    places = {"distro": " from the distribution's archive", "local": " from the local repository"}
    origin = "" if choice.kept else places.get(choice.source, "")
    head = f"Driver   {version} with {choice.flavour} kernel modules{origin}{stays}"
    other = f" ({'; '.join(choice.alternatives)})" if choice.alternatives else ""
    return head, f"         why: {'; '.join(choice.why)}{other}"


def _engine(runtime: RuntimeFacts) -> str:
    if runtime.carrier:
        return f"{runtime.name} {runtime.carrier}" + (f" with containerd {runtime.version}" if runtime.version else "")
    name = runtime.label if runtime.user else runtime.name
    return f"{name} {runtime.version}" if runtime.version else name
