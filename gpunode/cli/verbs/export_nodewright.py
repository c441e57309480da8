"""gpunode export nodewright: a package of the NodeWright (Skyhook) operator that runs gpunode on a cluster's nodes."""

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
        "nodewright",
        help="A package of the NodeWright (Skyhook) operator, and the object that asks for it.",
        examples=(
            "gpunode export nodewright --spec spec.yaml --image registry.example/gpunode --output DIR",
            "gpunode export nodewright --driver 580 --image IMAGE --kind skyhook --output DIR",
        ),
    )(nodewright)


def nodewright(
    wanted: SpecOptions,
    output: DirectoryOptions,
    image: Annotated[
        str | None,
        option("--image", metavar="IMAGE", help="The package's image, to be built, without a tag.", heading=HEADING),
    ] = None,
    kind: Annotated[
        str,
        option("--kind", metavar="KIND", help="nodewright (default), or skyhook of older operators.", heading=HEADING),
    ] = "nodewright",
) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.export_files import refuse_reboot, request_of, write_export
    from gpunode.errors import UsageError
    from gpunode.export.files import ExportedFile
    from gpunode.export.nodewright import KINDS, package_version
    from gpunode.export.nodewright import nodewright as export

    if image is None:
        raise UsageError(
            "which image?",
            evidence="nodes get the package as an image, which you build of the export",
            remedy="--image IMAGE where you will push it, such as registry.example/gpunode",
        )
    if not re.fullmatch(r"[a-z0-9]([a-z0-9._/-]|:[0-9]+/){0,200}", image):
        raise UsageError(
            f"--image {image[:80]!r} is no name of an image without a tag",
            evidence="the operator takes the package's version as the tag",
            remedy="for example registry.example/gpunode",
        )
    if kind == "skyhook" and ":" in image:
        raise UsageError(
            f"--image {image[:80]!r} has a port",
            evidence="operators of that kind cut an image's name at its first colon",
        )
    if kind not in KINDS:
        raise UsageError(f"--kind {kind[:80]!r} is no kind of its objects", remedy=f"choose {' or '.join(KINDS)}")
    tags: list[str] = []

    def made() -> tuple[ExportedFile, ...]:
        request = request_of(wanted, BringOptions())
        refuse_reboot(wanted, "the operator reboots nodes itself", "leave it out, and let its interrupt do it")
        tags.append(package_version(request))
        return export(request, image, kind)

    path = write_export("nodewright", output, made)
    say(f"gpunode: docker build --build-arg BASE=IMAGE --tag {image}:{tags[0]} {path}, and push it")
    say(f"gpunode: then kubectl apply -f {path / 'nodewright.yaml'}")
    return 0
