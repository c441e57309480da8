"""gpunode k8s device-plugin: NVIDIA's device plugin for a cluster, from one model that is checked first."""

from __future__ import annotations

from typing import Annotated

import typer

from gpunode.cli.options.groups import FileOptions, verb, wanted


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "device-plugin",
        help="Print the manifest of NVIDIA's device plugin. Asks no cluster, changes nothing.",
        examples=(
            "gpunode k8s device-plugin | kubectl apply -f -",
            "gpunode k8s device-plugin --plugin-version 0.17 --output plugin.yaml",
        ),
    )(device_plugin)


def device_plugin(
    output: FileOptions,
    plugin_version: Annotated[
        str | None, wanted("--plugin-version", metavar="V", help="Of the device plugin (default: the newest known).")
    ] = None,
) -> int:
    from gpunode.catalog.plugin_releases import plugin_releases
    from gpunode.cli.output import deliver_file
    from gpunode.kubernetes.documents import documents
    from gpunode.kubernetes.plugin_manifest import plugin_daemonset
    from gpunode.kubernetes.plugin_version import chosen

    release = chosen(plugin_version, plugin_releases())
    deliver_file(documents([plugin_daemonset(release)], f"NVIDIA device plugin {release.tag}"), output)
    return 0
