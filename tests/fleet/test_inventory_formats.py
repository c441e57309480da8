"""Each format that --inventory takes, told by what stands in it, and what is refused of each."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from gpunode.errors import UsageError
from gpunode.fleet.inventory import parse_ssh_targets
from gpunode.fleet.inventory.reading import read_inventory
from tests.fleet.inventories import hosts_of, named, read, refused

# As kubectl 1.31 and scontrol 23.11 print them.
NODES = """\
NAME      STATUS                     ROLES           AGE    VERSION
cp1       Ready                      control-plane   201d   v1.31.4
gpu01     Ready                      <none>          201d   v1.31.4
gpu02     NotReady,SchedulingDisabled   <none>       12d    v1.31.4
"""
WIDE = """\
NAME    STATUS   ROLES    AGE   VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE             KERNEL-VERSION
gpu01   Ready    <none>   1d    v1.31.4   10.0.0.1      <none>        Ubuntu 24.04.1 LTS   6.8.0-51-generic
"""
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu01", "labels": {"a": "b"}}}
OWN = """\
hosts:
  gpu01:
"""
ANSIBLE = """\
all:
  children:
    gpu:
      hosts:
        gpu01:
"""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "gpu01\nroot@gpu02:2222\n\n# none\ngpu[03-04]  # two\n; old\n",
            ["gpu01", "root@gpu02:2222", "gpu03", "gpu04"],
        ),
        ("gpu01, gpu02,gpu[03,5]\n", ["gpu01", "gpu02", "gpu03", "gpu5"]),
        ("[2001:db8::7]:22\n[::1]\n", ["[2001:db8::7]:22", "[::1]"]),
        ("127.0.0.1:2201\n127.0.0.1:2202\n", ["127.0.0.1:2201", "127.0.0.1:2202"]),
        ("gpu[01:03].example\n", ["gpu01.example", "gpu02.example", "gpu03.example"]),
        ("\ufeffgpu01\r\ngpu02\r\n", ["gpu01", "gpu02"]),
        ("node/gpu01\nnode/gpu02\n", ["gpu01", "gpu02"]),
        (NODES, ["cp1", "gpu01", "gpu02"]),
        (WIDE, ["gpu01"]),
        (json.dumps(NODE), ["gpu01"]),
        (json.dumps({"kind": "List", "items": [NODE, NODE]}, indent=4), ["gpu01"]),
        (OWN, ["gpu01"]),
        (f"# ours\n---\n{OWN}", ["gpu01"]),
        (ANSIBLE, ["gpu01"]),
        ("ungrouped:\n  hosts:\n    gpu01:\n", ["gpu01"]),
        ("[gpu]\ngpu01\n", ["gpu01"]),
        ("gpu01 ansible_port=22\n", ["gpu01"]),
        ('{"_meta": {"hostvars": {}}, "gpu": {"hosts": ["gpu01"]}}', ["gpu01"]),
        ('{"gpu": {"hosts": ["gpu01"], "vars": {}}}', ["gpu01"]),
        ('{"hosts": {"gpu01": {}}}', ["gpu01"]),
    ],
    ids=[
        "a list with comments and ranges",
        "commas in a list, as scontrol show hostnames takes them",
        "IPv6 in a list is no heading",
        "a list of one address behind several ports",
        "Ansible's ranges in a list",
        "a byte order mark, and Windows' line ends",
        "kubectl get nodes -o name",
        "kubectl get nodes",
        "kubectl get nodes -o wide",
        "kubectl get node gpu01 -o json",
        "kubectl get nodes -o json",
        "gpunode's own",
        "with the mark of a document",
        "Ansible's YAML",
        "Ansible's YAML without all",
        "Ansible's INI",
        "INI without a group",
        "ansible-inventory --list",
        "what an inventory program prints, without _meta",
        "our own as JSON",
    ],
)
def test_a_format_is_told_by_what_stands_in_it(tmp_path: Path, text: str, want: list[str]) -> None:
    assert list(named(tmp_path, text)) == want
    extra = read(tmp_path, text, "hosts.yaml")
    assert [str(one.target) for one in hosts_of(extra)] == want, "whatever the name of the file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no host is named"),
        ("# nothing\n", "no host is named"),
        ("---\n", "no host is named"),
        ("hosts:\n", "no host is named"),
        ("-oProxyCommand=x\n", "'-oProxyCommand=x' is not a host"),
        ("gpu01\n-x\na b\nh:0\n", "'-x' is not a host (the forms are host, user@host:port, [v6]:port); 'a b' is not"),
        ("gpu\x1b[31m01\n", r"'gpu\x1b[31m01' is not a host"),
        ("hosts:\n  -x:\n", "line 2: '-x' is not a host"),
        ("[gpu]\n-x ansible_port=1\n", "line 2: '-x' is not a host"),
        ("a: 1\n", "is no inventory that gpunode knows"),
        ("- gpu01\n", "this YAML is no mapping"),
        ("plugin: aws_ec2\n", "configures a plugin of Ansible's"),
        ("hosts:\n  a: &x {port: 1}\n  b: *x\n", "an alias of a list or mapping"),
        ("hosts:\n  a: {port: 1}\n  a: {port: 2}\n", "line 3: 'a' is there twice; the first is on line 2"),
        ("hosts: {" + "a: {" * 200, "nested too deeply"),
        ("hosts:\n\tgpu01:\n", "cannot be read as YAML; line 2, column 1"),
        ('{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "x"}}]}', "place 1 of this JSON is no node"),
        ("#!/usr/bin/python3\nprint()\n", "is a program"),
        ("$ANSIBLE_VAULT;1.1;AES256\n3132\n", "is encrypted by ansible-vault"),
        ("gpu[1-20000]\n", "is too long"),
        ("gpu[1-9000]\nx[1-9000]\n", "more than the 10000 hosts of one run"),
        ("hosts:\n  a[1-9000]:\n  b[1-9000]:\n", "over 10000 hosts"),
    ],
)  # fmt: skip
def test_what_is_no_inventory_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_all_faults_are_in_one_message(tmp_path: Path) -> None:
    text = "usr: root\nhosts:\n  a: {port: 0}\n  -x:\ngroups:\n  g: {children: [h], adress: x}\n"
    said = refused(tmp_path, text)
    for fault in (
        "line 1: 'usr' is not a key here (did you mean user?",
        "a: port: port '0' does not exist",
        "'-x' is not a host",
        "group g has a child 'h', and there is no such group",
        "group g: 'adress' is not a key here",
    ):
        assert fault in said
    assert said.endswith("nothing was touched; correct it")


def test_more_faults_than_a_screen_are_counted(tmp_path: Path) -> None:
    assert "and 80 more faults" in refused(tmp_path, "".join(f"-x{n}\n" for n in range(100)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: None, "cannot be read"),
        (lambda path: os.mkfifo(path), "no host is named"),
        (lambda path: path.write_bytes(b"gpu01\n\xff\xfe\n"), "is not UTF-8; line 2"),
        (lambda path: path.write_bytes(b"#" * ((16 << 20) + 1)), "is over 16 MiB"),
    ],
    ids=["a directory", "nothing", "a pipe that nobody writes to", "bytes", "too much"],
)
def test_a_file_that_is_none(tmp_path: Path, make: object, said: str) -> None:
    path = tmp_path / "hosts"
    make(path)  # type: ignore[operator]
    with pytest.raises(UsageError) as caught:
        read_inventory(path)
    assert said in f"{caught.value.problem}; {caught.value.evidence}"


def test_a_program_is_never_run(tmp_path: Path) -> None:
    path = tmp_path / "hosts.sh"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    path.chmod(stat.S_IRWXU)
    with pytest.raises(UsageError, match="is a program"):
        read_inventory(path)
    assert not (tmp_path / "ran").exists()


def test_ten_thousand_hosts_are_read(tmp_path: Path) -> None:
    assert len(named(tmp_path, "gpu[0001-10000]\n")) == 10_000
    assert len(named(tmp_path, "[gpu]\ngpu[00001:10000] ansible_user=root\n[all:vars]\nansible_port=2222\n")) == 10_000


# ---- --ssh @FILE


def test_a_file_of_ssh_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("gpu[01-02]\n# no\nroot@gpu03:22\n")
    (tmp_path / "b").write_text(NODES)
    found = parse_ssh_targets([f"first,@{tmp_path}/a", f"@{tmp_path}/b,last"])
    assert list(map(str, found)) == ["first", "gpu01", "gpu02", "root@gpu03:22", "cp1", "last"]


@pytest.mark.parametrize(
    ("text", "said"),
    [(OWN, "is an inventory with groups or settings"), ("-x\n", "'-x' is not a host"), ("", "no host is named")],
)
def test_what_a_file_of_ssh_is_not(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(UsageError) as caught:
        parse_ssh_targets([f"@{tmp_path}/a"])
    assert said in caught.value.problem
