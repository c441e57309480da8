"""An Ansible collection, gpunode.node: modules with check mode and diff, a role, and gpunode itself.

The modules run gpunode on the host and decide nothing themselves; what they are is templates/export/ansible.
"""

from __future__ import annotations

from gpunode import resources
from gpunode.export.files import ZIPAPP, ExportedFile, Request, text_file

TEMPLATES = "export/ansible"
# Where Ansible looks for collections below a directory of ANSIBLE_COLLECTIONS_PATH.
COLLECTION = "ansible_collections/gpunode/node"
AS_THEY_ARE = (
    "CHANGELOG.md",
    "README.md",
    "meta/runtime.yml",
    "plugins/action/facts.py",
    "plugins/action/setup.py",
    "plugins/module_utils/gpunode.py",
    "plugins/plugin_utils/carry.py",
    "roles/gpunode/meta/main.yml",
    "roles/gpunode/tasks/main.yml",
)
# Ansible replaces their first line by the Python of the host, and asks for one. They get it here: in a package of
# gpunode they are no programs, and rpmlint asks of a file with such a line that it is one.
MODULES = ("plugins/modules/facts.py", "plugins/modules/setup.py")
INTERPRETER = "#!/usr/bin/python\n"


def ansible(request: Request) -> tuple[ExportedFile, ...]:
    """The collection in the directories that Ansible looks for, and a playbook that uses its role."""
    carried = request.carried
    filled: dict[str, dict[str, object]] = {
        "galaxy.yml": {"version": request.version},
        "plugins/module_utils/carried.py": {"sha256": carried.sha256, "size": len(carried.zipapp)},
        "roles/gpunode/defaults/main.yml": {"spec": _indented(request.spec)},
    }
    files = [text_file(f"{COLLECTION}/{name}", _template(name)) for name in AS_THEY_ARE]
    files += [text_file(f"{COLLECTION}/{name}", INTERPRETER + _template(name)) for name in MODULES]
    files += [
        text_file(f"{COLLECTION}/{name}", resources.render(f"{TEMPLATES}/{name}.j2", **values))
        for name, values in filled.items()
    ]
    files.append(text_file(f"{COLLECTION}/.ansible-lint", _template("ansible-lint.yml")))
    files.append(ExportedFile(f"{COLLECTION}/files/{ZIPAPP}", carried.zipapp))
    return (*files, text_file("playbook.yml", _template("playbook.yml")))


def _template(name: str) -> str:
    return resources.template_text(f"{TEMPLATES}/{name}")


def _indented(spec: str) -> str:
    """A spec file's text as the value of a key: its lines below it, or an empty mapping."""
    lines = spec.splitlines()
    return "".join(f"\n  {line}" for line in lines) if lines else " {}"
