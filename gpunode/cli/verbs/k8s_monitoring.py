"""gpunode k8s monitoring: GPU metrics for Prometheus, and a dashboard that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import FileOptions, wanted
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer


FORMS = "manifest|service-monitor|dashboard|unit"


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "monitoring",
        help="Print NVIDIA's DCGM exporter for Prometheus, and a Grafana dashboard for it. Asks no cluster.",
        examples=(
            "gpunode k8s monitoring | kubectl apply -f -",
            "gpunode k8s monitoring --form dashboard --output gpus.json",
        ),
    )(monitoring)


def monitoring(
    output: FileOptions,
    form: Annotated[str, wanted("--form", metavar=FORMS, help="What is printed (default: a manifest).")] = "manifest",
    runtime_class: Annotated[
        str | None, wanted("--runtime-class", metavar="NAME", help="Where nvidia is not the engine's default.")
    ] = None,
) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import one_of
    from gpunode.cli.output import deliver_file
    from gpunode.errors import UsageError
    from gpunode.kubernetes import monitoring
    from gpunode.kubernetes.plugin_forms import cluster_of

    one_of("--form", form, tuple(monitoring.MONITORING_FORMS))
    if runtime_class is not None and form != "manifest":
        raise UsageError("--runtime-class is for --form manifest", remedy="leave one of them out")
    cluster = cluster_of(None, runtime_class)
    deliver_file(monitoring.monitoring(form, cluster), output)
    for note in monitoring.monitoring_notes(form, cluster):
        say(f"gpunode: {note}")
    return 0
