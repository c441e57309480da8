"""gpunode k8s device-plugin: NVIDIA's device plugin for a cluster, from one model that is checked first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import FileOptions, HostOptions, typed, wanted
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.kubernetes.plugin_model import Plugin
    from gpunode.kubernetes.plugin_pods import Cluster

FORMS = ("manifest", "helm", "configmap", "config", "unit", "gpu-operator")


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "device-plugin",
        help="Print NVIDIA's device plugin for a cluster, its settings checked. Asks no cluster, changes nothing.",
        examples=(
            "gpunode k8s device-plugin --set mig-strategy=single | kubectl apply -f -",
            "gpunode k8s device-plugin --config shared.yaml --form helm --output values.yaml",
        ),
    )(device_plugin)


def device_plugin(
    hosts: HostOptions,
    output: FileOptions,
    form: Annotated[
        str, wanted("--form", metavar="|".join(FORMS), help="What is printed (default: a manifest).")
    ] = "manifest",
    config: Annotated[
        list[str] | None,
        wanted("--config", metavar="[GROUP=]FILE", help="The plugin's config file; one for each node group."),
    ] = None,
    set: Annotated[
        list[str] | None,
        wanted("--set", metavar="NAME=VALUE", help="An option, by its flag, variable, key or chart value. Repeatable."),
    ] = None,
    spelling: Annotated[
        str | None, wanted("--spelling", metavar="flag|env|config", help="How manifest and unit say the options.")
    ] = None,
    plugin_version: Annotated[
        str | None, wanted("--plugin-version", metavar="V", help="Of the device plugin (default: the newest known).")
    ] = None,
    kubernetes: Annotated[
        str | None, wanted("--kubernetes", metavar="V", help="Of the cluster, where it is older than 1.20.")
    ] = None,
    runtime_class: Annotated[
        str | None,
        wanted("--runtime-class", metavar="NAME", help="Where nvidia is not the default runtime: make and use it."),
    ] = None,
    this_host: Annotated[
        bool, wanted("--this-host", help="Hold it against this machine first, as --ssh and --recorded do.")
    ] = False,
) -> int:
    from gpunode.catalog.plugin_options import plugin_options
    from gpunode.catalog.plugin_releases import plugin_releases
    from gpunode.cli.errors import say
    from gpunode.cli.output import deliver_file
    from gpunode.kubernetes.plugin_forms import IN_A_POD, check_form, cluster_of, form_notes, printed
    from gpunode.kubernetes.plugin_request import plugin_of
    from gpunode.kubernetes.plugin_version import chosen

    check_form(form, spelling)
    cluster = cluster_of(kubernetes, runtime_class)
    release = chosen(plugin_version, plugin_releases())
    plugin = plugin_of(release, plugin_options(), config or (), set or (), _read)
    text = printed(plugin, form, spelling, cluster)
    for note in form_notes(plugin, form):
        say(f"gpunode: {note}")
    if this_host or typed(hosts):
        _hold_against(plugin, cluster, hosts, in_pod=form in IN_A_POD)
    deliver_file(text, output)
    return 0


def _read(path: str) -> str:
    from gpunode.errors import UsageError
    from gpunode.foreign import read_file
    from gpunode.kubernetes.plugin_file import LONGEST

    if not path:
        raise UsageError("--config names no file", remedy="--config FILE, or --config GROUP=FILE for a group of nodes")
    try:
        raw = read_file(Path(path).expanduser(), LONGEST)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--config {path} cannot be read",
            evidence=getattr(error, "strerror", None) or str(error),
            remedy="name the plugin's config file",
        ) from error
    if len(raw) > LONGEST:
        raise UsageError(f"--config {path} is over {LONGEST} bytes", remedy="name the plugin's config file")
    return raw.decode("utf-8", "surrogateescape")


def _hold_against(plugin: Plugin, cluster: Cluster, options: HostOptions, *, in_pod: bool) -> None:
    """Raises UnsupportedHost where it would not work on one of the hosts."""
    from gpunode.advice import listing
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import not_left_out, open_hosts
    from gpunode.engines.kubernetes.pod_engines import pod_engines
    from gpunode.errors import UnsupportedHost
    from gpunode.facts.collect import collect
    from gpunode.kubernetes.plugin_host import not_known, unfit
    from gpunode.render.wording import with_name

    faults: list[str] = []
    with open_hosts(options) as named:
        for host in not_left_out(named):
            facts = collect(host.transport)
            engines = pod_engines(facts)
            found = unfit(plugin, cluster, facts, engines, in_pod=in_pod)
            faults += [with_name(str(host), fault) for fault in found]
            for note in not_known(plugin, facts, engines, in_pod=in_pod):
                say(f"gpunode: {with_name(str(host), note)}")
    if faults:
        raise UnsupportedHost(
            "these settings do not fit the node",
            evidence=listing(faults, 20, between="\n"),
            remedy="change them with --set, or the node; nothing was printed",
        )
