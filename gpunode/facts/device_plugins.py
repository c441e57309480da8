"""The kubelet's side of device plugins, from the probe's section `kubernetes`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from gpunode.facts.plugin_configs import parse_configs
from gpunode.facts.release import key_values
from gpunode.foreign import NotRead, read_json, whole_number
from gpunode.model.kubernetes import DevicePlugins, PluginPod
from gpunode.regex import regex

# Of NVIDIA's plugin, and of those made from it: nvidia-gpu.sock, nvidia-mig-1g.10gb.sock, nvidiaGPU-1.sock. The plugin
# of network cards puts the resource's prefix before its name: nvidia.com_hostdev.sock (sriov-network-device-plugin).
_SOCKET = regex(r"socket=([01]) (nvidia(?!\.com_)[\w.-]{0,100})", re.ASCII)
_POD = regex(r"pod=([\w.-]{1,400}) ([\w.-]{1,100}) (-1|[0-9]{1,6})", re.ASCII)
_REGISTRATION = regex(r"registry=([\w.-]{1,100}?)(?:-reg)?\.sock", re.ASCII)
_IMAGE = regex(r"[A-Za-z0-9][\w.:/@-]{0,299}", re.ASCII)
_UID = regex(r"ghost=([0-9A-Za-z-]{1,64})", re.ASCII)
_WAITS = regex(r"waits=([01]) ([\w.-]{1,400})", re.ASCII)


def parse_device_plugins(text: str) -> DevicePlugins | None:
    """None where the probe did not see the directory: no kubelet, not root, or a recording from before.

    plugins=/var/lib/kubelet/device-plugins
    root-dir=/var/lib/kubelet
    kubelet.sock=1
    socket=1 nvidia-gpu.sock
    registered={"nvidia.com/gpu":["GPU-5f1c2a90-7d11-4c3e-9a7e-0123456789ab"]}
    plugin=4711
    made=1
    image=nvcr.io/nvidia/k8s-device-plugin:v0.18.0
    env=PASS_DEVICE_SPECS=true
    pods=read
    pod=kube-system_nvidia-device-plugin-daemonset-x7x2k nvidia-device-plugin-ctr 0
    waits=1 kube-system_nvidia-device-plugin-daemonset-8d2wq
    entries=whole
    ghost=7c1a9b1e-0000-4000-8000-000000000001
    allocated=4
    allocated-last=1
    """
    value, lines = key_values(text), text.splitlines()
    if "plugins" not in value:
        return None
    pods = tuple(PluginPod(m[1], m[2], _count(m[3])) for m in map(_POD.fullmatch, lines) if m)
    return DevicePlugins(
        directory=value["plugins"],
        kubelet_socket="kubelet.sock" in value,
        sockets=MappingProxyType({m[2]: m[1] == "1" for m in map(_SOCKET.fullmatch, lines) if m}),
        registered=_registered(value.get("registered")),
        pods=pods if "pods" in value else None,
        processes=tuple(n for line in lines if line[:7] == "plugin=" and (n := whole_number(line[7:])) is not None),
        image=value["image"] if is_image(value.get("image", "")) else None,
        options=_options(lines) if "made" in value else None,
        said=value.get("said"),
        pod_resources="pod-resources" in value,
        root=value.get("root-dir"),
        dra=frozenset(m[1] for m in map(_REGISTRATION.fullmatch, lines) if m),
        validations=frozenset(line[11:] for line in lines if line.startswith("validation=")),
        configs=parse_configs(lines),
        waits=MappingProxyType({m[2]: m[1] == "1" for m in map(_WAITS.fullmatch, lines) if m}),
        allocated=_count(value.get("allocated")) if "entries" in value else None,
        ghosts=tuple(m[1] for m in map(_UID.fullmatch, lines) if m),
        kept="allocated-last" in value,
    )


def is_image(name: str) -> bool:
    return _IMAGE.fullmatch(name) is not None


def _registered(text: str | None) -> Mapping[str, tuple[str, ...]] | None:
    """`RegisteredDevices` of the checkpoint; a resource without devices may be null."""
    if not text:
        return None
    try:
        value = read_json(text)
    except NotRead:
        return None
    if not isinstance(value, dict):
        return None
    return MappingProxyType({str(name): _ids(devices) for name, devices in value.items()})


def _ids(devices: object) -> tuple[str, ...]:
    return tuple(one for one in devices if isinstance(one, str)) if isinstance(devices, list) else ()


def _options(lines: list[str]) -> Mapping[str, str]:
    """By the names of the environment; a flag goes before it: `option=pass-device-specs` is `=true`.

    Of another without a value (it stood in a word that is not read here) nothing is known.
    """
    found: dict[str, str] = {}
    for line in lines:
        kind, _, rest = line.partition("=")
        name, equals, value = rest.partition("=")
        if kind == "env":
            found.setdefault(name, value)
        elif kind == "option":
            variable = name.upper().replace("-", "_")
            if equals or variable == "PASS_DEVICE_SPECS":
                found[variable] = value if equals else "true"
            else:
                found.pop(variable, None)
    return MappingProxyType(found)


def _count(text: str | None) -> int | None:
    number = whole_number(text)
    return None if number is None or number < 0 else number
