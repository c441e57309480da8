"""`runs show --format ansible`: read back as Ansible's YAML is, and what no inventory may hold is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpunode.errors import ExitCode, UsageError
from gpunode.fleet.runs.as_inventory import NOT_DONE, as_inventory
from gpunode.model.report import HostOutcome
from gpunode.model.run_record import Controller, HostState, MergedRuns, PastHost, RunHeader
from tests.fleet.inventories import named

HEADER = RunHeader("20261121T145501Z-4711", "setup", "t", "ann", Controller("desk", 1), ())


def run(*hosts: PastHost, over_ssh: bool = True, **connection: object) -> MergedRuns:
    header = replace(HEADER, hosts=tuple(host.target for host in hosts), over_ssh=over_ssh, connection=connection)
    return MergedRuns((header,), hosts)


def ended(target: str, code: ExitCode = ExitCode.DONE) -> PastHost:
    return PastHost(target, HostState.ENDED, "t", HostOutcome(target, code))


MIXED = (
    ended("gpu01"),
    ended("root@gpu02:2222", ExitCode.UNREACHABLE),
    ended("[2001:db8::7]:22", ExitCode.FAILED),
    PastHost("gpu04", HostState.BEGUN),
    PastHost("gpu05"),
)


def test_how_a_host_ended_is_its_group(tmp_path: Path) -> None:
    text = as_inventory(run(*MIXED, user="ann", identity=["/home/ann/.ssh/gpu", "/x"], jump="ann@bastion:22,inner"))
    tree = yaml.safe_load(text)["all"]["children"]
    assert list(tree) == ["gpunode_done", NOT_DONE]
    left = tree[NOT_DONE]["children"]
    assert {group: list(found["hosts"]) for group, found in left.items()} == {
        "gpunode_at_work": ["gpu04"],
        "gpunode_failed": ["2001:db8::7"],
        "gpunode_not_begun": ["gpu05"],
        "gpunode_unreachable": ["gpu02"],
    }
    assert left["gpunode_unreachable"]["hosts"]["gpu02"] == {
        "ansible_host": "gpu02",
        "ansible_user": "root",
        "ansible_port": 2222,
        "ansible_ssh_private_key_file": "/home/ann/.ssh/gpu",
        "ansible_ssh_common_args": "-o ProxyJump=ann@bastion:22,inner",
    }
    assert text.startswith(f"# The hosts of run {HEADER.id}")


def test_gpunode_reads_it_as_it_reads_ansibles(tmp_path: Path) -> None:
    text = as_inventory(run(*MIXED, user="ann"))
    targets = {name: one.target for name, one in named(tmp_path, text, NOT_DONE).items()}
    assert {name: (one.host, one.user, one.port) for name, one in targets.items()} == {
        "gpu02": ("gpu02", "root", 2222),
        "[2001:db8::7]": ("2001:db8::7", "ann", 22),
        "gpu04": ("gpu04", "ann", None),
        "gpu05": ("gpu05", "ann", None),
    }


def test_of_a_run_with_an_inventory_it_has_groups_alone() -> None:
    text = as_inventory(run(ended("rack1-gpu"), inventory="/etc/hosts.yml", user="ann"))
    assert yaml.safe_load(text)["all"]["children"] == {"gpunode_done": {"hosts": {"rack1-gpu": None}}}


def test_this_machine_is_reached_without_ssh() -> None:
    text = as_inventory(run(ended("localhost"), over_ssh=False))
    hosts = yaml.safe_load(text)["all"]["children"]["gpunode_done"]["hosts"]
    assert hosts == {"localhost": {"ansible_connection": "local"}}


def test_two_ways_to_one_machine_are_two_hosts() -> None:
    text = as_inventory(run(ended("ann@gpu01"), ended("root@gpu01:22")))
    hosts = yaml.safe_load(text)["all"]["children"]["gpunode_done"]["hosts"]
    assert {name: found["ansible_user"] for name, found in hosts.items()} == {
        "ann_gpu01": "ann",
        "root_gpu01_22": "root",
    }


@pytest.mark.parametrize(
    ("target", "connection"),
    [
        ("{{x}}@gpu01", {}),
        ("{{lookup('pipe','touch${IFS}/x')}}", {"inventory": "hosts"}),
        ("gpu[01:99]", {"inventory": "hosts"}),
        ("gpu01", {"user": "{{ lookup('pipe', 'touch /x') }}"}),
        ("gpu01", {"jump": "bastion -o ProxyCommand=x"}),
        ("gpu01", {"identity": ["/x {{ y }}"]}),
        ("gpu01", {"port": "22 "}),
    ],
)
def test_what_ansible_would_evaluate_is_refused(target: str, connection: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        as_inventory(run(ended(target), **connection))


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot hold 'abc'"):
        as_inventory(run(*MIXED, port="abc"))
