"""Functions on the PCI bus: a line that is not understood is said, and hides none of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.facts.collect import assemble
from gpunode.facts.pci import parse_pci
from gpunode.model.facts import NOT_UNDERSTOOD
from tests.golden_text import EXAMPLES

GPU = "0000:41:00.0|0x10de|0x030200|0x2330|0x10de|0x16c1|16|16|32.0 GT/s PCIe|32.0 GT/s PCIe|0|active|nvidia|de103023|-"
GONE = "0000:42:00.0|0x10de|0x030200|-|-|-|-|-|-|-|-|-|-|-|-"
VF_GONE = "0000:5e:00.7|0x15b3|0x020000|-|-|-|-|-|-|-|-|-|-|-|-"
READY = EXAMPLES / "debian12-ready" / "facts.txt"


@pytest.mark.parametrize(
    ("odd", "section", "why"),
    [
        (GONE, "pci", "0000:42:00.0: a PCI id is not four hexadecimal digits: '-'"),
        (VF_GONE, "pci 0000:5e:00.7", "0000:5e:00.7: a PCI id is not four hexadecimal digits: '-'"),
        ("0000:42:00.0|0x10de", "pci", "0000:42:00.0: a PCI line has 2 fields, not 15: 0000:42:00.0|0x10de"),
        (GPU.replace("0x10de", "?", 1), "pci", "0000:41:00.0: a PCI id is not four hexadecimal digits: '?'"),
    ],
    ids=["a GPU that left", "a network card's virtual function that left", "a line that ends early", "no vendor"],
)
def test_a_line_that_is_not_understood_hides_no_other(odd: str, section: str, why: str) -> None:
    found = parse_pci(f"{odd}\n{GPU}\n")
    assert [device.address for device in found.devices] == ["0000:41:00.0"]
    assert found.unread == {section: NOT_UNDERSTOOD + why}


@pytest.mark.parametrize(("odd", "code"), [(GONE, 1), (VF_GONE, 0)], ids=["a GPU", "a virtual network function"])
def test_a_gpu_that_is_not_understood_fails_the_check_and_a_network_function_does_not(
    odd: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = READY.read_bytes().replace(b"\n@ pci rc=0\n", f"\n@ pci rc=0\n|{odd}\n".encode())
    assert assemble(stream, "gpu07").gpus == assemble(READY.read_bytes(), "gpu07").gpus != ()
    (tmp_path / "gpu07").write_bytes(stream)
    assert main(["check", "--recorded", str(tmp_path / "gpu07")]) == code
    assert ("os.answers-understood" in capsys.readouterr().out) == bool(code)
