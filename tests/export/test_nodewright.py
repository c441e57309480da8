"""The package is of the form that the operator's agent reads, and its step hands gpunode over to the node.

The forms are written down here from NVIDIA/skyhook f9b9e8b (agent/skyhook-agent/src/skyhook_agent/schemas/v1,
operator/config/crd/bases) and NVIDIA/nodewright 5a158db (chart/templates/nodewright-crd.yaml), read 2026-11-27.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpunode.export.nodewright import KINDS, nodewright, package_version
from gpunode.export.scripts import host_script

from .requests import SPEC, STAND_IN, request

STEP = {
    "name": str,
    "path": str,
    "arguments": list,
    "returncodes": list,
    "on_host": bool,
    "env": dict,
    "idempotence": bool,
    "upgrade_step": bool,
}
SEMVER = r"(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)-[0-9a-zA-Z-]+"
MODES = {
    f"{mode}{check}"
    for mode in ("apply", "config", "upgrade", "uninstall", "post-interrupt")
    for check in ("", "-check")
}
SPEC_FIELDS = {
    "nodeSelectors",
    "interruptionBudget",
    "packages",
    "runtimeRequired",
    "additionalTolerations",
    "priority",
}
PACKAGE_FIELDS = {"version", "image", "containerSHA", "interrupt", "dependsOn", "configMap", "env", "resources"}
IMAGE = "registry.example/gpunode"


def files(kind: str = "nodewright", **more: Any) -> dict[str, bytes]:
    return {one.name: one.data for one in nodewright(request(**more), IMAGE, kind)}


def test_config_json_is_of_the_agents_schema() -> None:
    config = json.loads(files()["skyhook-package/config.json"])
    assert set(config) == {"schema_version", "package_name", "package_version", "expected_config_files", "modes"}
    assert config["schema_version"] == "v1"
    assert re.fullmatch(SEMVER, config["package_version"])
    assert set(config["modes"]) <= MODES
    steps = [step for mode in config["modes"].values() for step in mode]
    for step in steps:
        assert {name: type(value) for name, value in step.items()} == STEP
        assert re.fullmatch(r"[a-zA-Z0-9_\-.]+", step["name"])
        assert step["returncodes"] == [0]
        assert f"skyhook-package/skyhook_dir/{step['path']}" in files()


@pytest.mark.parametrize("kind", KINDS)
def test_the_object_is_of_the_operators_definition(kind: str) -> None:
    (one,) = yaml.safe_load_all(files(kind)["nodewright.yaml"])
    assert (one["apiVersion"], one["kind"]) == KINDS[kind]
    assert set(one["spec"]) <= SPEC_FIELDS
    ((name, package),) = one["spec"]["packages"].items()
    assert re.fullmatch(r"[a-z][-a-z0-9]{0,41}[a-z]", name)
    assert set(package) <= PACKAGE_FIELDS
    assert package == {"version": package_version(request()), "image": IMAGE}
    assert one["spec"]["interruptionBudget"] == {"count": 1}


def test_another_spec_is_another_version_and_so_another_image() -> None:
    versions = {package_version(request(spec=spec)) for spec in (SPEC, "", 'driver: "595"\n')}
    assert len(versions) == 3
    for version in versions:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", version), "it is the image's tag"
        assert len(f"gpunode-{version}") <= 63, "and a label's value"


def test_the_package_holds_gpunode() -> None:
    with pytest.raises(ValueError, match="holds gpunode"):
        nodewright(request(path="/opt/gpunode.pyz"), IMAGE, "nodewright")


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces are root's to enter")
@pytest.mark.parametrize("code", [0, 4])
def test_the_step_hands_gpunode_and_the_spec_over_and_ends_as_it_does(tmp_path: Path, code: int) -> None:
    """nsenter is a stand-in: what is handed over is told by the stand-in of the host's own script."""
    directory = tmp_path / "skyhook_dir"
    directory.mkdir()
    for name, data in files().items():
        if "/skyhook_dir/" in name:
            (directory / name.rpartition("/")[2]).write_bytes(data)
    (directory / "host.sh").write_text(f'echo "$1 $(cat | sha256sum)"; [ "$1" != setup ] || exit {code}\n')
    nsenter = tmp_path / "bin" / "nsenter"
    nsenter.parent.mkdir()
    nsenter.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    nsenter.chmod(0o755)
    step = f'PATH={tmp_path}/bin:$PATH exec unshare --mount sh {directory}/gpunode.sh "$@"'
    argv = ("sh", "-c", step, "sh", "setup")
    env = {**os.environ, "SKYHOOK_DIR": str(tmp_path)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
    sums = [
        subprocess.run("sha256sum", input=data, capture_output=True, check=True).stdout.decode()
        for data in (STAND_IN, SPEC.encode(), b"")
    ]
    assert done.stdout == f"bring {sums[0]}spec {sums[1]}setup {sums[2]}", done.stderr
    assert done.returncode == code
    alone = ("unshare", "--pid", "--fork", "--mount-proc", "sh", str(directory / "gpunode.sh"), "setup")
    inside = subprocess.run(alone, capture_output=True, text=True, check=False, env=env)
    assert (inside.returncode, inside.stdout) == (2, "")
    assert "hostPID" in inside.stderr


def test_the_host_is_checked_by_the_spec_that_it_was_set_up_by(tmp_path: Path) -> None:
    state = tmp_path / "state"
    script = host_script(request(), str(state), "host", head="test", unit="test")

    def told(word: str, stdin: bytes = b"") -> tuple[int, str]:
        done = subprocess.run(
            ("sh", "-c", script, "sh", word), input=stdin, capture_output=True, check=False, timeout=60
        )
        return done.returncode, done.stdout.decode()

    assert told("bring", STAND_IN) == (0, "")
    assert told("spec", SPEC.encode()) == (0, "")
    assert told("check") == (0, f"stand-in ran check --spec {state}/spec.yaml\n")
    assert (state / "spec.yaml").read_text() == SPEC
