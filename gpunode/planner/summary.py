"""What a plan says of its host: system, kernel, GPUs and engines."""

from __future__ import annotations

from collections import Counter

from gpunode.catalog.load import Catalog
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.summary import EngineVersion, GpuCount, HostSummary


def host_summary(host: HostFacts, catalog: Catalog) -> HostSummary:
    models = Counter(catalog.gpu_model(gpu.device).name for gpu in host.gpus)
    distro = catalog.distro(host.os)
    return HostSummary(
        system=distro.name if distro else host.os.pretty_name or host.os.id,
        kernel=host.kernel.release,
        gpus=tuple(GpuCount(name, n) for name, n in models.items()),
        nvswitches=len(catalog.nvswitches(host)),
        engines=tuple(map(_engine, host.runtimes)),
    )


def _engine(runtime: RuntimeFacts) -> EngineVersion:
    name = runtime.label if runtime.user and not runtime.embedded_in else runtime.name
    return EngineVersion(name, runtime.version, runtime.embedded_in)
