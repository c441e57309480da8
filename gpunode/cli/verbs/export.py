"""gpunode export: the same spec for an engine that starts gpunode itself; a file for each target."""

from __future__ import annotations

from importlib import import_module

import typer

from gpunode.cli.typer_classes import VerbGroup

VERBS = (  # in the order of the help
    "export_cloud_init",
    "export_ansible",
    "export_daemonset",
    "export_nodewright",
    "export_packer_shell",
    "export_mkosi",
    "export_script",
)


def register(app: typer.Typer) -> None:
    export = typer.Typer(
        cls=VerbGroup,
        help="Give a spec to cloud-init, Ansible, Kubernetes, Packer or mkosi; a plan as a script. Changes no host.",
        rich_markup_mode=None,
        epilog="\b\nExamples:\n  gpunode export cloud-init --spec spec.yaml --gpunode-url URL --output DIR",
    )
    for verb in VERBS:
        import_module(f"gpunode.cli.verbs.{verb}").register(export)
    app.add_typer(export, name="export")
