"""gpunode k8s readiness: what keeps pods off a node until its GPUs can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import FileOptions, wanted
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "readiness",
        help="Print what keeps pods off a node until its GPUs can be used: taint, condition, order at boot.",
        examples=(
            "gpunode k8s readiness --form rule | kubectl apply -f -",
            "gpunode k8s readiness --form npd --expect-gpus 8 --output /etc/node-problem-detector/gpunode.json",
        ),
    )(readiness)


def readiness(
    output: FileOptions,
    form: Annotated[
        str | None,
        wanted("--form", metavar="rule|npd|kubelet|systemd|cdi", help="One part (default: all, to be read)."),
    ] = None,
    unit: Annotated[
        str | None, wanted("--unit", metavar="UNIT", help="What runs the kubelet (default kubelet.service).")
    ] = None,
    expect_gpus: Annotated[
        str | None, wanted("--expect-gpus", metavar="N", help="A node with fewer GPUs does not become ready.")
    ] = None,
    continuous: Annotated[
        bool, wanted("--continuous", help="The taint comes back when a later check fails (default: not).")
    ] = False,
) -> int:
    from gpunode.cli.hosts import one_of, whole_number
    from gpunode.cli.output import deliver_file
    from gpunode.kubernetes.readiness import KUBELET, READINESS_FORMS, kubelet_units, readiness_part

    one_of("--form", form, READINESS_FORMS)
    one_of("--unit", unit, kubelet_units())
    gpus = whole_number("--expect-gpus", expect_gpus, 1, 999)
    _refuse_unread(form, unit=unit, expect_gpus=expect_gpus, continuous=continuous)
    parts = {
        one: readiness_part(one, unit or KUBELET, continuous=continuous, expect_gpus=gpus)
        for one in READINESS_FORMS
        if form in (None, one)
    }
    if form is not None:
        ((where, text),) = parts.values()
        deliver_file(text, output)
        _say_where(form, where)
    else:
        pages = (f"## {where}   (--form {one})\n\n{text}" for one, (where, text) in parts.items())
        deliver_file("\n".join(pages), output)
    return 0


def _refuse_unread(form: str | None, *, unit: str | None, expect_gpus: str | None, continuous: bool) -> None:
    """Raises UsageError for what the part that is asked for does not read."""
    from gpunode.errors import UsageError

    given = {"--unit": unit is not None, "--expect-gpus": expect_gpus is not None, "--continuous": continuous}
    read = {"rule": ("--continuous",), "npd": ("--expect-gpus",), "kubelet": ("--unit",), "systemd": ("--unit",)}
    for flag in (flag for flag, typed in given.items() if typed and form is not None):
        if flag not in read.get(form or "", ()):
            raise UsageError(f"{flag} is not for --form {form}", remedy="leave one of them out")


def _say_where(form: str, where: str) -> None:
    from gpunode.cli.errors import say

    say(f"gpunode: it goes to: {where}")
    if form == "kubelet":
        say("gpunode: a node registers with these once; on one that is in the cluster they change nothing")
