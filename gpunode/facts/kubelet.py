"""What the kubelet is told: flags, its file, and what Kubernetes distributions pass on to theirs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from types import MappingProxyType

from gpunode.catalog.runtimes import kubernetes_distributions, merged_by_rancher
from gpunode.facts.engines import distribution_version
from gpunode.facts.processes import Process
from gpunode.facts.release import key_values
from gpunode.facts.wire import Sections
from gpunode.model.kubernetes import Gate, KubeletSettings
from gpunode.regex import regex

_GATE = regex(r"([A-Za-z][A-Za-z0-9]{0,100})[ \t]*[=:][ \t]*(true|false)\b", re.ASCII)
_FLAG = regex(r"--([a-z][a-zA-Z0-9-]{0,100})(?:=|$)", re.ASCII)
_MAPS = ("feature-gates", "node-labels")
MOST_FLAGS = 320  # a kubelet knows two hundred
_EMBEDDING = ("k3s-server", "k3s-agent", "rke2")
_MICROK8S = "/var/snap/microk8s/current/args/kubelet"


def parse_settings(sections: Sections, daemons: tuple[Process, ...]) -> KubeletSettings | None:
    """None where nothing of a kubelet's settings was read: no kubelet, or a recording from before.

    arg=feature-gates=DevicePlugins=true,Accelerators=true
    config=/var/lib/kubelet/config.yaml
    config-dir=/etc/kubernetes/kubelet.conf.d
    settings=read
    gate=MemoryQoS=true
    cpuManagerPolicy=static
    """
    text = sections.text("kubernetes")
    value = key_values(text)
    lines = text.splitlines()
    told = (line[4:] for line in lines if line.startswith("arg="))
    arguments = passed_on(sections, daemons) | key_values("\n".join(told))
    if not arguments and "settings" not in value and "unreadable" not in value:
        return None
    return KubeletSettings(
        gates=MappingProxyType(_gates(arguments.get("feature-gates", ""), lines, value)),
        node_labels=tuple(w.partition("=")[0] for w in arguments.get("node-labels", "").split(",") if w),
        cpu_manager=arguments.get("cpu-manager-policy") or value.get("cpuManagerPolicy") or "none",
        topology_manager=arguments.get("topology-manager-policy") or value.get("topologyManagerPolicy") or "none",
        container_runtime=arguments.get("container-runtime"),
        endpoint=arguments.get("container-runtime-endpoint") or value.get("containerRuntimeEndpoint") or None,
        config=value.get("config") or None,
        config_dir=value.get("config-dir"),
        unread=value.get("unreadable"),
    )


def flags_of_process(daemons: tuple[Process, ...]) -> tuple[str, ...] | None:
    """("config", "node-ip") of `/usr/bin/kubelet --config=... --node-ip ...`; None where no kubelet runs by itself."""
    argv = next((one.argv for one in daemons if one.comm == "kubelet" and one.argv), None)
    if argv is None:
        return None
    named = (_FLAG.match(word) for word in argv[1:])
    return tuple(dict.fromkeys(found[1] for found in named if found))[:MOST_FLAGS]


def passed_on(sections: Sections, daemons: tuple[Process, ...]) -> dict[str, str]:
    """What a distribution's command line and files tell its kubelet: {"feature-gates": "A=true"}, without quotes.

    Of a flag that comes twice the last counts, and what is a map collects all, as the kubelet's own parser has it
    (k8s.io/component-base/cli/flag); a command line goes before the files of k3s.
    """
    return _last(_in_files(sections)) | _last(_on_command_lines(daemons))


def _last(words: Iterator[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name, value = name.strip(), text.strip().strip("\"'")
        if equals:
            found[name] = f"{found[name]},{value}" if name in _MAPS and name in found else value
    return found


def kubelet_version(sections: Sections) -> str | None:
    """ "1.31.4": of the kubelet's own answer ("Kubernetes v1.31.4"), else of the distribution that embeds it."""
    found = re.search(r"\bv(\d+\.\d+\.\d+)", sections.text("kubelet:version"))
    if found:
        return found[1]
    versions = (distribution_version(sections, one.name) for one in kubernetes_distributions())
    return next((version for version in versions if version), None)


def _gates(flag: str, lines: list[str], value: dict[str, str]) -> dict[str, Gate]:
    """A flag goes before the file, gate by gate."""
    file = f"featureGates of {value.get('config', 'its configuration')}"
    written = (line.partition("=")[2] for line in lines if line.startswith(("gate=", "gates=")))
    found = {name: Gate(on == "true", "--feature-gates") for name, on in _GATE.findall(flag)}
    for name, on in _GATE.findall("\n".join(written)):
        found.setdefault(name, Gate(on == "true", file))
    return found


def _on_command_lines(daemons: tuple[Process, ...]) -> Iterator[str]:
    """`NAME=VALUE` of each."""
    for daemon in daemons:
        if daemon.comm in _EMBEDDING:
            words = [*daemon.argv, ""]
            for word, following in itertools.pairwise(words):
                if word == "--kubelet-arg":
                    yield following
                elif word.startswith("--kubelet-arg="):
                    yield word.partition("=")[2]


def _in_files(sections: Sections) -> Iterator[str]:
    """Likewise."""
    for name in ("k3s", "rke2"):
        for path in sorted(sections.files):
            if merged_by_rancher(f"/etc/rancher/{name}", path):
                yield from _listed(sections.files[path].text or "")
    yield from (line[2:] for line in (_text(sections, _MICROK8S)).splitlines() if line.startswith("--"))


def _text(sections: Sections, path: str) -> str:
    return (sections.files[path].text or "") if path in sections.files else ""


def _listed(text: str) -> Iterator[str]:
    """The items of `kubelet-arg:` in a config.yaml of k3s or rke2, as a list of lines or one word."""
    inside = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("- ") or stripped == "-":
            if inside:
                yield stripped[1:].strip().strip("\"'")
        elif stripped and not stripped.startswith("#"):
            key, _, value = stripped.partition(":")
            inside = key.strip("\"'") in ("kubelet-arg", "kubelet-arg+")
            if inside and value.strip():
                yield from (w.strip().strip("\"'") for w in value.strip().strip("[]").split(", "))
