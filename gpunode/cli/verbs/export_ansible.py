"""gpunode export ansible: a collection whose modules run gpunode on the hosts of a play."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.cli.options.export import BringOptions, DirectoryOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer


def register(export: typer.Typer) -> None:
    verb(
        export,
        "ansible",
        help="An Ansible collection: modules with check mode, diff and facts, and a role with the spec.",
        examples=(
            "gpunode export ansible --spec spec.yaml --output DIR",
            "gpunode export ansible --driver 580 --runtime docker --output DIR",
        ),
    )(ansible)


def ansible(wanted: SpecOptions, output: DirectoryOptions) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.export_files import refuse_reboot, request_of, write_export
    from gpunode.export.ansible import ansible as export
    from gpunode.export.files import ExportedFile

    def made() -> tuple[ExportedFile, ...]:
        request = request_of(wanted, BringOptions())
        refuse_reboot(
            wanted, "a play reboots its hosts itself", "leave it out, and set gpunode_reboot: true of the role"
        )
        return export(request)

    path = write_export("ansible", output, made)
    say(
        f"gpunode: ANSIBLE_COLLECTIONS_PATH={path} ansible-playbook -i INVENTORY --check --diff {path / 'playbook.yml'}"
    )
    return 0
