"""The network functions that manage the NVLink 5 switches of HGX B200 and B300, by their vital product data."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.model.facts import DriverFacts
from tests.facts.hosts import make_root, run_probe

VPD = b"\x82\x15\x00NVIDIA ConnectX-7 HCA\x90\x20\x00PN\x0a920-9B210-0V3\x0bSMDL=%b\x00\x00\x78"
FUNCTIONS = {
    "0000:05:00.0": ("0x15b3", "0x020700", "SW_MNG"),
    "0000:06:00.0": ("0x15b3", "0x020700", "HCA"),
    "0000:07:00.0": ("0x15b3", "0x020700", None),
    "0000:08:00.0": ("0x15b3", "0x080100", "SW_MNG"),
    "0000:09:00.0": ("0x14e4", "0x020000", "SW_MNG"),
}


def board(root: Path) -> Path:
    make_root(root)
    for address, (vendor, kind, model) in FUNCTIONS.items():
        function = root / "sys/bus/pci/devices" / address
        function.mkdir()
        for attribute, value in {"vendor": vendor, "class": kind, "device": "0x1021"}.items():
            (function / attribute).write_text(f"{value}\n")
        if model:
            (function / "vpd").write_bytes(VPD % model.encode())
    return root


def test_they_are_seen_before_mlx5_ib_has_made_their_infiniband_devices(tmp_path: Path) -> None:
    root = board(tmp_path)
    assert not (root / "sys/class/infiniband").exists()
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").driver.switch_management == ("0000:05:00.0",)


def driver(root: Path) -> DriverFacts:
    return assemble(run_probe(("sh",), root).stdout, "gpu07").driver


@pytest.mark.parametrize(
    ("files", "umad"),
    [
        (
            {"modules.dep": "kernel/drivers/infiniband/core/ib_umad.ko.zst: kernel/x/ib_core.ko\n"},
            True,
        ),
        ({"modules.dep": "updates/dkms/ib_umad.ko:\n"}, True),
        ({"modules.dep": "", "modules.builtin": "kernel/drivers/infiniband/core/ib_umad.ko\n"}, True),
        ({"modules.dep": "kernel/drivers/infiniband/core/ib_uverbs.ko.zst:\n", "modules.builtin": "x\n"}, False),
        ({}, None),
    ],
    ids=["the kernel's own", "DOCA's", "built in", "in another package", "no list of modules"],
)
def test_whether_the_running_kernel_has_the_module_that_manages_them(
    files: dict[str, str], umad: bool | None, tmp_path: Path
) -> None:
    root = board(tmp_path)
    tree = root / "lib/modules" / (root / "proc/sys/kernel/osrelease").read_text().strip()
    tree.mkdir(parents=True, exist_ok=True)
    for name in ("modules.dep", "modules.builtin"):
        (tree / name).unlink(missing_ok=True)
    for name, text in files.items():
        (tree / name).write_text(text)
    assert driver(root).umad is umad


def test_no_other_host_is_asked_for_that_module(tmp_path: Path) -> None:
    make_root(tmp_path)
    assert b"umad=" not in run_probe(("sh",), tmp_path).stdout
