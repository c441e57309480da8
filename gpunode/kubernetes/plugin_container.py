"""The plugin's container: what it is told, which directories of the host it has, which rights it needs."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_model import Plugin, Settings
from gpunode.kubernetes.plugin_spelling import arguments, beside_config, environment
from gpunode.values import dataclass

PLUGINS = "/var/lib/kubelet/device-plugins"
CONFIG_FILE = "/config/config.yaml"


@dataclass(frozen=True)
class Mount:
    name: str
    path: str  # in the container
    source: Object  # the volume: {"hostPath": {...}}
    read_only: bool = False

    @property
    def mount(self) -> Object:
        return {"name": self.name, "mountPath": self.path} | ({"readOnly": True} if self.read_only else {})

    @property
    def volume(self) -> Object:
        return {"name": self.name, **self.source}


def plugin_container(plugin: Plugin, spelling: str) -> Object:
    """Its image starts the plugin. Raises UsageError where the spelling cannot say something."""
    told: dict[str, object] = {}
    if spelling == "flag" and (args := arguments(plugin, plugin.settings)):
        told["args"] = args
    if env := _environment(plugin, spelling):
        told["env"] = [{"name": name, "value": value} for name, value in env]
    return {
        "name": "nvidia-device-plugin-ctr",
        "image": plugin.release.image,
        **told,
        "securityContext": rights(plugin),
    }


def _environment(plugin: Plugin, spelling: str) -> list[tuple[str, str]]:
    env: list[tuple[str, str]] = []
    if spelling == "env":
        env = environment(plugin, plugin.settings)
    elif spelling == "config":
        env = [*beside_config(plugin), ("CONFIG_FILE", CONFIG_FILE)]
    return [*env, ("NVIDIA_MIG_MONITOR_DEVICES", "all")] if plugin.any("mig") else env


def rights(plugin: Plugin) -> Object:
    """As the chart gives them: device nodes need all, MIG and volume mounts CAP_SYS_ADMIN, all else nothing."""
    groups = plugin.groups.values()
    if any(one.get("pass-device-specs") for one in groups):
        return {"privileged": True}
    if plugin.any("mig") or any(one.has("device-list-strategy", "volume-mounts") for one in groups):
        return {"capabilities": {"add": ["SYS_ADMIN"]}}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def mounts(plugin: Plugin) -> Sequence[Mount]:
    """The kubelet's directory always; the driver's root, CDI's directory and those of MPS where they are needed."""
    found = [Mount("kubelet-device-plugins-dir", PLUGINS, _directory(PLUGINS, "Directory"))]
    if root := driver_root(plugin):
        path = _path(plugin.settings, "driver-root-ctr-path", "/driver-root")
        found.append(Mount("driver-root", path, _directory(root, "Directory"), True))
    if plugin.any("cdi"):
        found.append(Mount("cdi-root", "/var/run/cdi", _directory("/var/run/cdi", "DirectoryOrCreate")))
    return [*found, *mps_mounts(plugin)] if plugin.any("mps") else found


def mps_mounts(plugin: Plugin) -> Sequence[Mount]:
    root = next(_path(one, "mps-root", "") for one in plugin.groups.values() if one.mps)
    return (
        Mount("mps-root", "/mps", _directory(root, "DirectoryOrCreate")),
        Mount("mps-shm", "/dev/shm", {"hostPath": {"path": f"{root}/shm"}}),
    )


def driver_root(plugin: Plugin) -> str | None:
    """CDI's specification is made from the driver's files, which are the host's; None: the plugin needs none."""
    if "driver-root" not in plugin.settings.values and not plugin.any("cdi"):
        return None
    return _path(plugin.settings, "driver-root", "/")


def _path(settings: Settings, name: str, default: str) -> str:
    value = settings.get(name)
    return value if isinstance(value, str) else default


def _directory(path: str, kind: str) -> Object:
    return {"hostPath": {"path": path, "type": kind}}
