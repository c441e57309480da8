"""What only a restart of dockerd brings, and what it costs the containers that run."""

from __future__ import annotations

from os.path import dirname

from gpunode.advice import listing, named
from gpunode.editing import json_text
from gpunode.engines.daemon.commands import SYSTEM_PATH
from gpunode.engines.provenance import flags_of
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts, RuntimeFacts

HOOK = "nvidia-container-runtime-hook"


def misses_hook(host: HostFacts, engine: RuntimeFacts, *, coming: bool = False) -> bool:
    """Whether the running dockerd started before the host had the hook, so that `docker run --gpus` fails.

    It looks for the hook in its PATH at its start, never again (moby: daemon/nvidia_linux.go, from 29.2 on
    daemon/devices_nvidia_linux.go), and no answer of its API has what it found: the two times are the evidence.
    `coming`: the hook is about to be installed.
    """
    path, since, started = host.toolkit.hook_path, host.toolkit.hook_since, engine.started_at
    if not engine.active:
        return False
    if path is None:
        return coming
    if since is None or started is None or dirname(path) not in SYSTEM_PATH.split(":"):
        return False
    # A start is known to the second, rounded down.
    return since > started + 1


def lost(host: HostFacts, engine: RuntimeFacts) -> str:
    """The containers that stop with dockerd, by name where they are known; "" when none does."""
    count = engine.containers_running
    if count == 0 or _outlive(host, engine):
        return ""
    if count is None:
        return "the containers that run"
    names = [named(name) for name in engine.running[:count]]
    whole = listing(names + ["another"] * (count - len(names)))
    return f"the container{'s' * (count > 1)} {whole}" if names else f"{count} containers"


def _outlive(host: HostFacts, engine: RuntimeFacts) -> bool:
    """dockerd keeps them at its end by the live-restore that runs, and at its start by that of the file or flag."""
    if not engine.live_restore or engine.swarm:
        return False
    flag = flags_of(engine.flags).get("live-restore", ["false"])[-1]
    return flag != "false" or _in_file(host, engine)


def _in_file(host: HostFacts, engine: RuntimeFacts) -> bool:
    file = host.file(engine.config_path)
    try:
        return json_text.load(file.path, file.text or "").get("live-restore") is True
    except ConfigFileError:  # dockerd would not start again with it
        return False
