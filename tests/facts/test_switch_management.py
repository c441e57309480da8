"""The network functions that manage the NVLink 5 switches of HGX B200 and B300, by their vital product data."""

from __future__ import annotations

from pathlib import Path

from gpunode.facts.collect import assemble
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
