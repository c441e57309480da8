"""gpunode export daemonset: a DaemonSet whose nodes set themselves up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.export import BringOptions, DirectoryOptions
from gpunode.cli.options.groups import option
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer


HEADING = "The cluster"


def register(export: typer.Typer) -> None:
    verb(
        export,
        "daemonset",
        help="A DaemonSet that has each labelled node run gpunode in its own namespaces.",
        examples=(
            "gpunode export daemonset --spec spec.yaml --image busybox:1.37 --output DIR",
            "gpunode export daemonset --driver 580 --image IMAGE --kubectl-image IMAGE --output DIR",
        ),
    )(daemonset)


def daemonset(
    wanted: SpecOptions,
    bring: BringOptions,
    output: DirectoryOptions,
    image: Annotated[
        str | None,
        option("--image", metavar="IMAGE", help="With sh and nsenter; busybox has both.", heading=HEADING),
    ] = None,
    kubectl_image: Annotated[
        str | None,
        option(
            "--kubectl-image",
            metavar="IMAGE",
            help="With sh and kubectl: takes the taint of `k8s readiness` off a node that is set up.",
            heading=HEADING,
        ),
    ] = None,
    namespace: Annotated[
        str, option("--namespace", metavar="NAME", help="Its own (default gpunode).", heading=HEADING)
    ] = "gpunode",
) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.export_files import request_of, write_export
    from gpunode.errors import UsageError
    from gpunode.export.daemonset import SELECTED, Images
    from gpunode.export.daemonset import daemonset as export
    from gpunode.export.files import ExportedFile

    if image is None:
        raise UsageError(
            "which image?",
            evidence="its root process becomes the nodes' root, so gpunode chooses none for you",
            remedy="--image IMAGE with sh and nsenter, such as busybox:1.37, best by its digest",
        )
    for flag, value in (("--image", image), ("--kubectl-image", kubectl_image)):
        if value is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}", value):
            raise UsageError(f"{flag} {value[:80]!r} is no name of an image", remedy="for example busybox:1.37")
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", namespace):
        raise UsageError(
            f"--namespace {namespace[:80]!r} is no name of a namespace", evidence="lower case, digits and -: gpu-nodes"
        )

    def made() -> tuple[ExportedFile, ...]:
        request = request_of(wanted, bring)
        return export(request, Images(image, kubectl_image), namespace)

    path = write_export("daemonset", output, made)
    say(f"gpunode: kubectl apply --server-side -f {path / 'daemonset.yaml'}")
    say(f"gpunode: then, a node at a time: kubectl label node NODE {'='.join(SELECTED)}")
    return 0
