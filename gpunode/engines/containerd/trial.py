"""A container with the handler's program, started by containerd's own client.

ctr speaks to the same daemon as kubelet, and the same shim starts the container; the CRI plugin, which it does not ask,
is what rt.containerd-live asks. A pod would need the sandbox image, which nothing here pulls, and a kubelet ends pods
that it does not know.
"""

from __future__ import annotations

from gpunode.engines.containerd import live
from gpunode.engines.containerd.cri_section import containerd_section, section
from gpunode.engines.containerd.imports import gathered
from gpunode.engines.containerd.mixed import in_read_schema
from gpunode.errors import GpunodeError
from gpunode.model.active import Trial
from gpunode.model.facts import HostFacts, RuntimeFacts


def trial(host: HostFacts, engine: RuntimeFacts, handler: str) -> Trial:
    """One that names the handler's program and its cgroup driver, both as the daemon's configuration has them."""
    program, unfit, fault = _program(host, engine, handler)
    cgroup = ("--runc-systemd-cgroup", "--cgroup", "machine.slice:gpunode:test")
    return Trial(
        engine.label,
        engine.unit,
        f"ctr run --runc-binary {program or f'(of the handler {handler})'}",
        kind="rootfs",
        program="ctr",
        socket=engine.socket,
        address=f"CONTAINERD_ADDRESS={engine.socket}",
        options=("--runc-binary", program, *(cgroup if engine.systemd_cgroup.get(handler) else ())),
        unfit=unfit,
        fault=fault,
    )


def _program(host: HostFacts, engine: RuntimeFacts, handler: str) -> tuple[str, str, str]:
    """(what the handler runs, why that is not known, why nothing starts with it)."""
    try:
        files = in_read_schema(gathered(host, engine, engine.config_path))
        runtimes = section(containerd_section(live.effective(engine, files)), "runtimes")
    except GpunodeError as error:
        return "", error.problem, ""
    if handler not in runtimes:
        return "", "", f"its configuration has no handler {handler}"
    program = section(runtimes, handler, "options").get("BinaryName")
    if isinstance(program, str) and program:
        return program, "", ""
    return "", f"its handler {handler} names no program", ""
