"""gpunode k8s: what a cluster is told of its GPU nodes; a file for each verb."""

from __future__ import annotations

from importlib import import_module

import typer

from gpunode.cli.typer_classes import VerbGroup

VERBS = (  # in the order of the help
    "k8s_labels",
    "k8s_device_plugin",
    "k8s_dra",
    "k8s_pod",
    "k8s_readiness",
    "k8s_verify",
    "k8s_preflight",
    "k8s_monitoring",
)


def register(app: typer.Typer) -> None:
    k8s = typer.Typer(
        cls=VerbGroup,
        help="Kubernetes: objects and reports for GPU nodes. Changes neither node nor cluster, except for verify --pod "
        "and labels --kubeconfig.",
        rich_markup_mode=None,
        epilog="\b\nExamples:\n  gpunode k8s device-plugin | kubectl apply -f -",
    )
    for verb in VERBS:
        import_module(f"gpunode.cli.verbs.{verb}").register(k8s)
    app.add_typer(k8s, name="k8s")
