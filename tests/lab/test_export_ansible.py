"""The collection of `gpunode export ansible`, played by ansible-core 2.14 and the newest on a host over SSH."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.fleet.runs.as_inventory import NOT_DONE, as_inventory
from tests.fleet.runs.test_as_inventory import MIXED, run

from .ansible_core import programs
from .host import Host
from .lab import Lab

STATE = "/var/lib/gpunode/ansible"
FACTS = """- hosts: all
  become: true
  tasks:
    - gpunode.node.facts:
    - ansible.builtin.assert:
        that: ansible_facts.gpunode.os.id == 'debian'
"""
WATCHED = (
    "find /etc /usr/share/keyrings /var/lib/dpkg/status -printf '%p %T@ %m %u %l\\n' | sort; ls -A /var/lib/gpunode"
)


class Player:
    """ansible-playbook of one version, with a home of its own, as a user of the host who has sudo."""

    def __init__(self, version: str, directory: Path, collection: Path, host: Host) -> None:
        self._bin, self._home = programs(version), directory
        directory.mkdir()
        config = host.ssh_config_text("admin")
        (directory / "ssh_config").write_text(config)
        by = f"ansible_ssh_common_args='-F {directory}/ssh_config' ansible_python_interpreter=/usr/bin/python3"
        (directory / "hosts").write_text(f"{host.name} {by}\n")
        self._env = {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "ANSIBLE_COLLECTIONS_PATH": str(collection),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",  # a socket's path may have 108 characters, and pytest's are long
            "ANSIBLE_LOCAL_TEMP": str(directory / "tmp"),
        }

    def play(self, playbook: Path, *words: str) -> tuple[dict[str, int], str]:
        """(the host's line of the recap, {"ok": 2, "changed": 1, "failed": 0, ...}; all that was printed)."""
        argv = ("ansible-playbook", "-i", str(self._home / "hosts"), *words, str(playbook))
        done = subprocess.run(argv, env=self._env, text=True, capture_output=True, timeout=900, check=False)
        said = done.stdout + done.stderr
        recap = done.stdout.partition("PLAY RECAP")[2]
        assert recap, said
        return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", recap)}, said


def test_a_host_is_set_up_once_and_then_nothing_changes(lab: Lab, tmp_path: Path) -> None:
    export = tmp_path / "export"
    words = ("--driver", "595", "--flavour", "open", "--trust-key", lab.repo_fingerprint)
    assert main(["export", "ansible", *words, "--output", str(export)]) == 0
    host = lab.host("debian12", gpu="h100", runtime="docker")
    old, new = (Player(version, tmp_path / version, export, host) for version in ("2.14", "newest"))
    role, facts = export / "playbook.yml", tmp_path / "facts.yml"
    facts.write_text(FACTS)

    host.nsrun("mkdir -p /var/lib/gpunode", check=True)
    before = host.nsrun(WATCHED).stdout
    line, said = new.play(role, "--check", "--diff")
    assert (line["changed"], line["failed"], line["unreachable"]) == (1, 0, 0), said
    assert "default-runtime" in said, "no difference of a file is shown"
    assert host.nsrun(WATCHED).stdout == before, "--check changed something"

    line, said = old.play(role)
    assert (line["changed"], line["failed"], line["unreachable"]) == (1, 0, 0), said
    assert "nvidia" in host.read("/etc/docker/daemon.json")
    assert host.nsrun("nvidia-smi -L").returncode == 0

    for player in (old, new):
        line, said = player.play(role)
        assert (line["changed"], line["failed"], line["unreachable"]) == (0, 0, 0), said
        line, said = player.play(facts)
        assert (line["changed"], line["failed"]) == (0, 0), said

    (kept,) = host.path(STATE).glob("gpunode-*.pyz")
    kept.write_text("import os; os.system('touch /pwned')\n")
    zipapp = export / "ansible_collections/gpunode/node/files/gpunode.pyz"
    zipapp.write_text("import os; os.system('touch /pwned')\n")
    line, said = new.play(role)
    assert line["failed"] == 1, said
    assert "nothing was run: gpunode" in said
    assert not host.exists("/pwned")


@pytest.mark.parametrize("version", ["2.14", "newest"])
def test_an_inventory_of_a_run_is_read_as_gpunode_means_it(version: str, tmp_path: Path) -> None:
    """Names with an address, a user and a port are the ones that a parser may take apart."""
    (tmp_path / "left.yml").write_text(as_inventory(run(*MIXED, user="ann")))
    argv = (programs(version) / "ansible-inventory", "-i", str(tmp_path / "left.yml"), "--list")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    done = subprocess.run(argv, env=env, text=True, capture_output=True, timeout=120, check=True)
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["gpunode_done"]["hosts"] == ["gpu01"]
    assert sorted(found[NOT_DONE]["children"]) == [
        "gpunode_at_work",
        "gpunode_failed",
        "gpunode_not_begun",
        "gpunode_unreachable",
    ]
    hosts = found["_meta"]["hostvars"]
    assert hosts["gpu02"] == {"ansible_host": "gpu02", "ansible_user": "root", "ansible_port": 2222}
    assert hosts["2001:db8::7"] == {"ansible_host": "2001:db8::7", "ansible_user": "ann", "ansible_port": 22}


def test_ansible_lint_finds_nothing(tmp_path: Path) -> None:
    """In the profile for what is published, but for what the collection says itself (.ansible-lint)."""
    assert main(["export", "ansible", "--driver", "580", "--output", str(tmp_path / "export")]) == 0
    here = tmp_path / "export" / "ansible_collections" / "gpunode" / "node"
    lint = programs("newest")
    env = {
        "PATH": f"{lint}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "export"),
    }
    argv = ("ansible-lint", "--offline", "--nocolor", "--profile", "production")
    done = subprocess.run(argv, cwd=here, env=env, text=True, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed: 0 failure(s), 0 warning(s)" in done.stderr, done.stderr
