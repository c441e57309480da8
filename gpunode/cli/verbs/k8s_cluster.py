"""A cluster that --kubeconfig names, for the verbs of k8s that ask its API server from here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import wanted

if TYPE_CHECKING:
    from gpunode.cluster.node import NodeObject
    from gpunode.cluster.server import Server
    from gpunode.model.facts import HostFacts

ContextFlag = Annotated[
    str | None, wanted("--context", metavar="NAME", help="Of --kubeconfig (default: its current one).")
]


def refuse_context(kubeconfig: Path | None, context: str | None) -> None:
    """Raises UsageError for a context of nothing."""
    from gpunode.errors import UsageError

    if context is not None and kubeconfig is None:
        raise UsageError("--context is for --kubeconfig", remedy="leave it out, or add --kubeconfig FILE")


@contextmanager
def open_cluster(kubeconfig: Path, context: str | None) -> Iterator[Server]:
    """Raises UnsupportedHost without the official client, UsageError for the kubeconfig, TransportError."""
    from gpunode.cli.errors import say
    from gpunode.cluster.exec_credential import with_credentials
    from gpunode.cluster.kubeconfig import read_kubeconfig
    from gpunode.cluster.library import official_client
    from gpunode.cluster.server import open_server

    official_client()
    access = read_kubeconfig(kubeconfig, context)
    if access.insecure:
        say(
            f"gpunode: {kubeconfig} has insecure-skip-tls-verify: whoever answers at {access.server} is believed, "
            "and gets its token"
        )
    with open_server(with_credentials(access)) as server:
        yield server


def node_of(server: Server, host: HostFacts, name: str | None) -> NodeObject:
    """The host's node; `name`: as it was typed. Raises UnsupportedHost where it is another machine's, or may not be
    asked for.
    """
    from gpunode.cluster.node import read_node
    from gpunode.errors import UnsupportedHost

    asked = name or node_name_of(host)
    if server.node is not None and server.node != asked:
        raise UnsupportedHost(
            f"the kubeconfig is of node {server.node}, and this is about node {asked}",
            evidence=f"its certificate is for system:node:{server.node}, and NodeRestriction lets a node change itself "
            "alone",
            remedy="name an administrator's kubeconfig",
        )
    node = read_node(server, asked)
    if name is None and (other := _of_another(node, host)):
        by, evidence = other
        raise UnsupportedHost(
            f"node {asked} is not this host, by its {by}",
            evidence=f"the node's object: {evidence}",
            remedy=f"--context names another cluster; --node {asked} says that it is this host all the same",
        )
    return node


def _of_another(node: NodeObject, host: HostFacts) -> tuple[str, str] | None:
    """By what, and how that is known; None where nothing tells. Machines of one image share their kernel, and no boot.

    A kubelet that does not run has not told of the boot since.
    """
    here = host.kernel
    if node.kernel and node.kernel != here.release:
        return "kernel", f"kernelVersion {node.kernel[:80]}; here {here.release} runs"
    if node.boot and here.boot_id and node.boot != here.boot_id and host.kubernetes.running:
        return "boot", f"bootID {node.boot[:80]}; {here.boot_id} is that of this host, whose kubelet runs"
    return None


def node_name_of(host: HostFacts) -> str:
    """As its kubelet calls it, where that is known. Raises UsageError for a host's name that cannot be a node's."""
    from gpunode.kubernetes.labels_forms import node_name
    from gpunode.kubernetes.pods import HOSTNAME

    known = host.kubernetes
    label = known.node.labels.get(HOSTNAME) if known.node else None
    return known.node_name or node_name(label or host.hostname)
