"""How this host's kubelet is started again, and how it is asked afterwards whether all is as before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gpunode import resources
from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.engines.daemon import commands
from gpunode.engines.kubernetes.kubelet_places import UNIT_DIRECTORY, places
from gpunode.model.action import Action, Run
from gpunode.model.facts import HostFacts, RuntimeFacts, ServiceFacts
from gpunode.model.kubelet_program import kubelet_version
from gpunode.model.kubernetes import KUBELET_UNIT
from gpunode.regex import regex

HEALTHZ_PORT = 10248
STAYS_S = 12  # it asks its engine every five seconds, and tells the API server every ten what it found
WAIT_S = 90  # for a plugin that starts anew after the kubelet, and a node that reports every ten seconds
_PORT = regex(r"^[ \t]*healthzPort:[ \t]*([0-9]{1,5})\b|--healthz-port[= ]([0-9]{1,5})\b", re.MULTILINE)
_BIND = regex(r"(?:^[ \t]*healthzBindAddress:[ \t]*|--healthz-bind-address[= ])[\"']?([^\s\"'#]*)", re.MULTILINE)
_ANSWERING = ("127.0.0.1", "0.0.0.0", "::")  # at 127.0.0.1, where it is asked
SCRIPTS = ("daemon/query", "trust", "daemon/restart", "daemon/kubelet")


class Kubelet(NamedTuple):
    """The one of this host."""

    name: str  # "kubelet", "k3s"
    version: str  # "1.28.4"
    unit: str
    runs: bool
    state: ServiceFacts | None  # of the unit; None: it was not read

    @property
    def is_off(self) -> bool:
        """Somebody switched it off."""
        state = self.state
        return state is not None and state.active == "inactive" and state.enabled in ("disabled", "masked")

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def kubelet_of(host: HostFacts) -> Kubelet | None:
    """None where there is none, or none whose version is known."""
    known, distribution, version = host.kubernetes, host.kubernetes.distribution or "", kubelet_version(host)
    if version is None or not (known.kubelet or known.joined):
        return None
    own = {one.name: one.kubelet_units for one in kubernetes_distributions()}
    units = own.get(distribution, (KUBELET_UNIT,))
    unit = next((one for one in units if _is_loaded(host, one)), units[0])
    state = host.services.get(unit)
    runs = known.running and (state is None or state.active in ("active", "reloading"))
    return Kubelet(distribution if distribution in own else "kubelet", version, unit, runs, state)


def is_inside_an_engine(host: HostFacts) -> bool:
    """One unit runs both, so that the engine is not started while the kubelet does not start."""
    kubelet = kubelet_of(host)
    return kubelet is not None and any(engine.unit == kubelet.unit for engine in host.runtimes)


def _is_loaded(host: HostFacts, unit: str) -> bool:
    state = host.services.get(unit)
    return state is not None and state.load != "not-found"


def started(host: HostFacts, kubelet: Kubelet, paths: Sequence[str], words: Sequence[str] = ()) -> tuple[Action, ...]:
    """Started again and asked: what was so before must be so again. `words`: what it must have been started with."""
    return (*reread(paths), commands.restart(kubelet.unit), _verify(host, kubelet, words))


def asked_after(host: HostFacts, engine: RuntimeFacts) -> tuple[Action, ...]:
    """Where the node was Ready before an engine was changed: it stays so, for as long as a fault takes to show."""
    kubelet = kubelet_of(host)
    if engine.user or kubelet is None or not kubelet.runs or not _was_ready(host) or host.init != "systemd":
        return ()
    if not _is_loaded(host, kubelet.unit):
        return ()  # somebody else's program starts it (k0s, a container), and its process cannot be asked for
    ask = _verify(host, kubelet, ())
    return (replace(ask, stdin=f"gpunode_enough={STAYS_S}\n{ask.stdin}", read_only=True),)


def reread(paths: Sequence[str]) -> tuple[Action, ...]:
    """systemd's own look at the files of its units, where one of them is among these."""
    return (Run(("systemctl", "daemon-reload")),) if any(path.startswith(UNIT_DIRECTORY) for path in paths) else ()


def _verify(host: HostFacts, kubelet: Kubelet, words: Sequence[str]) -> Run:
    node, by = (
        (host.kubernetes.node_name, host.kubernetes.kubeconfig) if kubelet.runs and _was_ready(host) else (None, None)
    )
    plugins = host.kubernetes.device_plugins
    registered = kubelet.runs and plugins is not None and any(plugins.sockets.values())
    directory = plugins.directory if registered and plugins else "-"
    ready = (node, by) if node and by else ("-", "-")
    argv = ("sh", "-s", "--", kubelet.unit, str(WAIT_S), str(_healthz_port(host)), *ready, directory)
    return Run(
        (*argv, *words),
        timeout_s=WAIT_S + 60,
        stdin="".join(map(resources.script, SCRIPTS)),
        description=f"ask the running {kubelet.name} for its health",
    )


def _was_ready(host: HostFacts) -> bool:
    node = host.kubernetes.node
    return node is not None and node.conditions.get("Ready", "").split(" ")[0] == "True"


def _healthz_port(host: HostFacts) -> int:
    texts = [place.file.text or "" for place in places(host)]
    if any(match[1] not in _ANSWERING for text in texts for match in _BIND.finditer(text)):
        return 0  # it answers somewhere else, and is not asked
    found = next((match[1] or match[2] for text in texts for match in _PORT.finditer(text)), None)
    return min(int(found), 65535) if found else HEALTHZ_PORT
