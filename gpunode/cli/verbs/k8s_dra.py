"""gpunode k8s dra: values for the chart of NVIDIA's DRA driver, held against nodes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import FileOptions, HostOptions, typed, wanted
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.kubernetes.dra_values import DraNode


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "dra",
        help="Print values for the chart of NVIDIA's DRA driver. Asks no cluster, changes nothing.",
        examples=("gpunode k8s dra --ssh gpu[01-12] --output values.yaml", "gpunode k8s dra --compute-domains"),
    )(dra)


def dra(
    hosts: HostOptions,
    output: FileOptions,
    compute_domains: Annotated[
        bool,
        wanted("--compute-domains", help="With ComputeDomains (default: where a named host has the boards for them)."),
    ] = False,
    this_host: Annotated[
        bool, wanted("--this-host", help="Hold it against this machine first, as --ssh and --recorded do.")
    ] = False,
) -> int:
    from gpunode.cli.output import deliver_file
    from gpunode.kubernetes.documents import documents
    from gpunode.kubernetes.dra_values import HEAD, KUBELET, dra_values

    nodes = _nodes(hosts) if this_host or typed(hosts) else ()
    values = dra_values(
        compute_domains=compute_domains or any(node.across_hosts for node in nodes),
        kubelet=nodes[0].kubelet if nodes else KUBELET,
    )
    deliver_file(documents([values], HEAD), output)
    return 0


def _nodes(options: HostOptions) -> tuple[DraNode, ...]:
    """Raises UnsupportedHost where the DRA driver would not work on one of them, or one chart cannot be for all."""
    from dataclasses import replace

    from gpunode.advice import listing
    from gpunode.catalog.cdi_versions import lacks_cdi
    from gpunode.catalog.load import load_catalog
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import not_left_out, open_hosts
    from gpunode.engines.kubernetes.pod_engines import pod_engines
    from gpunode.errors import UnsupportedHost
    from gpunode.facts.collect import collect
    from gpunode.kubernetes.dra_values import dra_node, not_known_for_dra, unfit_for_dra
    from gpunode.render.wording import with_name

    catalog, faults = load_catalog(), list[str]()
    nodes: dict[str, DraNode] = {}
    with open_hosts(options) as named:
        for host in not_left_out(named):
            facts = collect(host.transport)
            engines = tuple(replace(one, cdi=False) if lacks_cdi(one) else one for one in pod_engines(facts))
            faults += [with_name(str(host), fault) for fault in unfit_for_dra(facts, catalog, engines)]
            for note in not_known_for_dra(facts, engines):
                say(f"gpunode: {with_name(str(host), note)}")
            nodes[str(host)] = dra_node(facts, catalog)
    if len({node.kubelet for node in nodes.values()}) > 1:
        faults += [with_name(host, f"the kubelet's directory is {node.kubelet}") for host, node in nodes.items()]
    if faults:
        raise UnsupportedHost(
            "one chart of NVIDIA's DRA driver does not fit these nodes",
            evidence=listing(faults, 20, between="\n"),
            remedy="change the nodes, or name fewer of them; nothing was printed",
        )
    return tuple(nodes.values())
