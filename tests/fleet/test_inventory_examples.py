"""The inventories that people copy are read, and say what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpunode.fleet.inventory import parse_ssh_targets
from gpunode.fleet.inventory.members import Member
from gpunode.fleet.inventory.reading import read_inventory
from tests.fleet.inventories import hosts_of, named

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "inventory"
GPUS = [f"gpu{n:02}.example" for n in range(1, 13)]


def of(name: str, *limit: str) -> dict[str, Member]:
    return {str(one.target): one for one in hosts_of(read_inventory(EXAMPLES / name), limit)}


def test_every_sample_is_in_a_test() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir()) == [
        "ansible.ini", "ansible.yaml", "fleet.yaml", "hosts.txt", "l40s.yaml"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["fleet.yaml", "ansible.ini", "ansible.yaml"])
def test_the_three_inventories_reach_the_same_hosts_alike(name: str) -> None:
    found = of(name, "cluster")
    assert list(found) == GPUS
    assert {(one.target.user, one.target.port, one.jump) for one in found.values()} == {
        ("root", None, "bastion.example")
    }
    keys = {name: one.identity for name, one in found.items()}
    assert keys == {name: Path("~/.ssh/l40s").expanduser() if name in GPUS[8:] else None for name in GPUS}


def test_our_own_has_what_is_wanted() -> None:
    found = of("fleet.yaml")
    assert dict(found["gpu01.example"].layer) == {
        "driver": "580", "expect.gpus": "8", "expect.model": "H100 SXM5 80GB", "kubernetes.mode": "device-plugin"
    }  # fmt: skip
    assert dict(found["gpu12.example"].layer) == {
        "driver": "595", "flavour": "open", "expect.gpus": "4", "kubernetes.mode": "device-plugin"
    }  # fmt: skip
    assert found["login01"].layer == ()


def test_the_list_is_one_of_ssh_too() -> None:
    want = [*GPUS[:8], "root@gpu09.example:2222", "[2001:db8::7]:22"]
    assert list(of("hosts.txt")) == want
    assert [str(one) for one in parse_ssh_targets([f"@{EXAMPLES / 'hosts.txt'}"])] == want


def test_the_inventory_in_the_docs_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "fleet.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"### gpunode's own inventory\n\n((?:    .*\n)+)", page)
    (tmp_path / "h100.yaml").write_text("driver: 595\n")
    found = named(tmp_path, re.sub(r"^    ", "", block, flags=re.MULTILINE))
    assert dict(found["gpu01.example"].layer) == {"driver": "595", "expect.gpus": "4"}
    assert found["lab02.example"].identity == Path("~/.ssh/lab").expanduser()
