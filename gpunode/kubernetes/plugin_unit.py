"""The plugin as a service of systemd, for hosts on which no DaemonSet may run. Its binary is out of NVIDIA's image."""

from __future__ import annotations

from gpunode import resources
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_container import driver_root
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_spelling import arguments, beside_config, environment

BINARY = "/usr/local/bin/nvidia-device-plugin"  # /usr/bin/nvidia-device-plugin in the image
CONFIG_FILE = "/etc/nvidia-device-plugin/config.yaml"


def plugin_unit(plugin: Plugin, spelling: str) -> str:
    """Every value is of plain characters (plugin_values.py): no quoting, no % and no $ for systemd to read."""
    if plugin.grouped:
        raise UsageError("a unit is for one node, and has one config", remedy="name one with --config")
    if plugin.any("mps"):
        raise UsageError(
            "MPS needs its daemon next to the plugin, and a unit starts the plugin alone",
            remedy="take --form manifest, or share by timeSlicing",
        )
    words, variables = [BINARY], list[tuple[str, str]]()
    if spelling == "flag":
        words += arguments(plugin, plugin.settings)
    elif spelling == "env":
        variables = environment(plugin, plugin.settings)
    else:
        words.append(f"--config-file={CONFIG_FILE}")
        variables = beside_config(plugin)
    variables += _driver_root(plugin)
    return resources.render(
        "systemd/nvidia-device-plugin.service.j2",
        release=plugin.release.tag,
        image=plugin.release.image,
        binary=BINARY,
        command=" ".join(words),
        variables=[f"{name}={value}" for name, value in variables],
        config=CONFIG_FILE if spelling == "config" else "",
    )


def _driver_root(plugin: Plugin) -> list[tuple[str, str]]:
    """No container is around it: it would look for the driver's files below /driver-root, where an image mounts them.

    A variable in every spelling: a config file is printed for pods as well, and the plugin takes both.
    """
    root = driver_root(plugin)
    if root is None or "driver-root-ctr-path" in plugin.settings.values:
        return []
    (option,) = (one for one in plugin.options if one.flag == "driver-root-ctr-path")
    return [(option.env_of(plugin.release.numbers), root)]
