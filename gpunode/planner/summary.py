"""What a plan shows: its host (system, kernel, GPUs and engines), and the diffs of the files that its steps write."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gpunode.catalog.load import Catalog
from gpunode.editing.diff import unified
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Step
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


def with_diff(host: HostFacts, step: Step) -> Step:
    """`step` with a diff of each file that it writes; one that was made with the step is not changed."""
    if step.diff:
        return step
    puts = (action for action in step.actions if isinstance(action, PutFile))
    return replace(step, diff="\n".join(filter(None, (_diff(host, put) for put in puts))))


def _diff(host: HostFacts, put: PutFile) -> str:
    return unified(put.path, _now(host, put.path).text, put.text)


def _now(host: HostFacts, path: str) -> FileFacts:
    """Files that may hold repositories and pins are facts of the package manager."""
    return next((file for file in host.packages.sources if file.path == path), host.file(path))
