"""The collection: whole, with the spec in its role, and not for another gpunode. ansible-core plays it in the lab."""

from __future__ import annotations

import ast
import hashlib

import pytest
import yaml

from gpunode.export.ansible import COLLECTION, ansible

from .requests import SPEC, STAND_IN, request


def files(spec: str = SPEC) -> dict[str, bytes]:
    return {one.name.removeprefix(f"{COLLECTION}/"): one.data for one in ansible(request(spec=spec))}


def test_it_holds_gpunode_and_its_hash() -> None:
    found = files()
    assert found["files/gpunode.pyz"] == STAND_IN
    assert f'SHA256 = "{hashlib.sha256(STAND_IN).hexdigest()}"' in found["plugins/module_utils/carried.py"].decode()


@pytest.mark.parametrize("spec", [SPEC, "", 'toolkit_config: {mode: "cdi"}\n'])
def test_the_roles_spec_is_the_spec(spec: str) -> None:
    defaults = yaml.safe_load(files(spec)["roles/gpunode/defaults/main.yml"])
    assert defaults["gpunode_spec"] == (yaml.safe_load(spec) or {})
    assert defaults["gpunode_reboot"] is False


@pytest.mark.parametrize("name", [name for name in files() if name.endswith(".py")])
def test_every_plugin_is_python_that_an_old_ansible_can_send(name: str) -> None:
    """Without annotations and f-strings: the modules say in words that a host's Python is too old."""
    tree = ast.parse(files()[name].decode(), feature_version=(3, 4))
    assert [node for node in ast.walk(tree) if isinstance(node, (ast.JoinedStr, ast.AnnAssign))] == []


@pytest.mark.parametrize("module", ["setup", "facts"])
def test_the_documentation_is_yaml(module: str) -> None:
    tree = ast.parse(files()[f"plugins/modules/{module}.py"].decode())
    texts = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    assert yaml.safe_load(str(texts["DOCUMENTATION"]))["module"] == module
    assert yaml.safe_load(str(texts["EXAMPLES"]))
    assert yaml.safe_load(str(texts["RETURN"]))
