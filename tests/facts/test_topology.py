"""The PCI tree above GPUs and RDMA devices, as the probe's shells read it and as the parser takes it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.nvlink import parse_peers
from gpunode.facts.topology import parse_topology
from gpunode.facts.wire import Section, Sections
from gpunode.model.topology import Place, Topology
from tests.facts.hosts import make_root, run_probe

AS_ROOT = os.geteuid() == 0
SWITCH = "pci0000:15/0000:15:01.0/0000:16:00.0"
TREE = {  # function: its class, where it is
    "0000:41:00.0": ("0x030200", f"{SWITCH}/0000:17:02.0"),
    "0000:42:00.0": ("0x030200", f"{SWITCH}/0000:17:03.0"),
    "0000:43:00.0": ("0x020700", f"{SWITCH}/0000:17:04.0"),
    "0000:44:00.0": ("0x020700", "pci0000:15/0000:15:02.0"),
}
PORTS = ("0000:17:02.0", "0000:17:03.0", "0000:17:04.0")
PLACES = {name: Place(tuple(way.split("/")[1:]), 1) for name, (_, way) in TREE.items()}


def config(**dwords: int) -> bytes:
    """A bridge's config space; a384=... is the double word at 0x384."""
    space = bytearray(4100)
    space[:4] = bytes.fromhex("b51030c0")
    for at, value in dwords.items():
        space[int(at[1:], 16) : int(at[1:], 16) + 4] = value.to_bytes(4, "little")
    return bytes(space[:4096])


# As a PLX 8796 has it: serial number, AER, power budgeting, ACS, vendor specific, and not in that order.
LISTED = {"a100": 0xFB410003, "afb4": 0x13820001, "a138": 0xF2410004, "af24": 0xB701000D, "ab70": 0x0001000B}
REDIRECTING = config(**LISTED, af28=0x001D005F)
SPACES: dict[str, bytes] = {"0000:17:02.0": REDIRECTING, "0000:17:03.0": config(**LISTED, af28=0x0000005F),
                            "0000:17:04.0": bytes(range(256))}  # fmt: skip


@pytest.fixture(params=[("dash",), ("bash", "--posix"), ("busybox", "ash")], ids=" ".join)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


def machine(root: Path, gpus: int = 2) -> Path:
    make_root(root)
    devices = root / "sys/bus/pci/devices"
    shutil.rmtree(devices / "0000:41:00.0")
    for name, (kind, way) in TREE.items():
        if kind == "0x030200" and int(name[6]) > gpus:
            continue
        where = root / "sys/devices" / way / name
        where.mkdir(parents=True)
        vendor = "0x10de" if kind == "0x030200" else "0x15b3"
        for attribute, value in {"vendor": vendor, "class": kind, "device": "0x2330", "numa_node": "1"}.items():
            (where / attribute).write_text(f"{value}\n")
        (devices / name).symlink_to(where)
    for n, name in enumerate(("0000:43:00.0", "0000:44:00.0")):
        (root / f"sys/class/infiniband/mlx5_{n}").mkdir(parents=True)
        (root / f"sys/class/infiniband/mlx5_{n}/device").symlink_to(root / "sys/devices" / TREE[name][1] / name)
    for port, space in SPACES.items():
        if (root / "sys/devices" / SWITCH / port).is_dir():
            (root / "sys/devices" / SWITCH / port / "config").write_bytes(space)
    return root


def test_every_shell_reads_the_same_tree(shell: tuple[str, ...], tmp_path: Path) -> None:
    topology = assemble(run_probe(shell, machine(tmp_path)).stdout, "gpu07").topology
    assert topology is not None
    assert dict(topology.places) == PLACES
    assert dict(topology.acs) == (dict(zip(PORTS, (0x1D, 0, None), strict=True)) if AS_ROOT else {})


def test_of_one_gpu_no_switch_is_read(tmp_path: Path) -> None:
    stream = run_probe(("sh",), machine(tmp_path, gpus=1)).stdout
    topology = assemble(stream, "gpu07").topology
    assert topology is not None
    assert (set(topology.places), dict(topology.acs)) == (set(PLACES) - {"0000:42:00.0"}, {})
    assert b"@ switch_config" not in stream


def test_a_virtual_machine_has_no_tree_of_its_own(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "proc/cpuinfo").write_text("flags\t\t: fpu hypervisor lahf_lm\n")
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").topology == Topology()


def test_a_host_without_switches_has_no_ports(tmp_path: Path) -> None:
    stream = run_probe(("sh",), make_root(tmp_path)).stdout
    assert assemble(stream, "gpu07").topology == Topology()
    assert b"@ switch_config" not in stream


def parsed(config: str, topology: str = "port=0000:17:02.0") -> Topology | None:
    return parse_topology(Sections({"topology": Section(topology), "switch_config": Section(config)}))


MARK = "6e757067 2d65646f 6e756f62 79726164"


def dump(space: bytes) -> str:
    """As od prints it, without its asterisks."""
    rows = [space[at : at + 16] for at in range(0, len(space), 16)]
    words = [" ".join(f"{int.from_bytes(row[n : n + 4], 'little'):08x}" for n in range(0, 16, 4)) for row in rows]
    return "".join(f"{16 * n:06x} {row}\n" for n, row in enumerate([MARK, *words])) + f"{len(space) + 16:06x}\n"


def test_a_recording_from_before_says_nothing_of_it() -> None:
    assert parse_topology(Sections({})) is None
    assert parsed("", "") == Topology()


@pytest.mark.parametrize(
    ("space", "acs"),
    [
        (REDIRECTING, {"0000:17:02.0": 0x1D}),
        (config(a100=0x0001000D, a104=0x007F00FF), {"0000:17:02.0": 0x7F}),
        (config(), {"0000:17:02.0": None}),
        (config(a100=0x10010001), {"0000:17:02.0": None}),
        (config(a100=0xFFFFFFFF), {"0000:17:02.0": None}),
        (config(a100=0xFFC10001), {"0000:17:02.0": None}),
        (b"\xb5\x10" * 128, {"0000:17:02.0": None}),
        (b"\xb5\x10" * 32, {}),
        (b"\xff" * 4096, {}),
        (b"", {}),
    ],
    ids=[
        "behind others", "the first", "an empty list", "a list in a circle", "a list without an end",
        "a capability at the very end", "no PCI Express function", "without root's rights", "off the bus", "unreadable",
    ],
)  # fmt: skip
def test_the_control_register_of_a_port(space: bytes, acs: dict[str, int | None]) -> None:
    topology = parsed(dump(space))
    assert topology is not None
    assert dict(topology.acs) == acs


@pytest.mark.parametrize(
    "config",
    [
        dump(REDIRECTING).replace("000100", "zzzzzz"),
        dump(REDIRECTING).replace("\n", " 00000000\n"),
        dump(REDIRECTING)[:200],
        f"000000 {MARK}\n*\nffffffff\n",
        f"000000 {MARK}\n000010\n" * 2,
        dump(REDIRECTING) + f"001010 {MARK}\n",
        "\x1b[31m\udcff",
    ],
    ids=["no offset", "five words", "cut off", "a huge one", "backwards", "two for one", "noise"],
)
def test_what_is_no_answer_of_od_is_not_known(config: str) -> None:
    assert parsed(config) == Topology()


@pytest.mark.parametrize(
    "line",
    [
        "place=", "place=1", "place=1 pci0000:15", "place=1 ../../etc", "place=1 pci0000:15/0000:15:01.0/x",
        "place=1 pci0000:15" + "/0000:15:01.0" * 100, "place=1 pci0000:15/\x1b[31m",
    ],
)  # fmt: skip
def test_a_place_of_another_form_is_passed_over(line: str) -> None:
    assert parsed("", f"{line}\nport=x\n") == Topology()


def test_a_node_that_the_firmware_does_not_name_is_not_known() -> None:
    topology = parsed("", "place=-1 pci0000:15/pci10000:e0/10000:e0:01.0/0000:19:00.0")
    assert topology == Topology({"0000:19:00.0": Place(("10000:e0:01.0",), None)})


@pytest.mark.parametrize(
    ("text", "peers"),
    [
        (" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tNS\tX\n\nLegend:\n  X    = Self\n", (("X", "OK"), ("NS", "X"))),
        ("GPU0 X OK\nGPU1 OK\n", ()),
        ("GPU0 OK OK\nGPU1 OK X\n", ()),
        ("GPU1 X OK\nGPU2 OK X\n", ()),
        ("GPU0 X \x1b[31m\nGPU0 X ok\n" + "GPU0" * 500, ()),
        ("Invalid combination of input arguments\n", ()),
    ],
    ids=["two GPUs", "a word is missing", "not its own peer", "no first one", "noise", "an older nvidia-smi"],
)
def test_who_reaches_whom(text: str, peers: tuple[tuple[str, ...], ...]) -> None:
    assert parse_peers(text) == peers
