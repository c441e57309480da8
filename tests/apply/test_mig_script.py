"""The script that applies a MIG layout: what it does to the healthy GPUs while another is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources
from tests.packages.test_repo_scripts import tool

LOST, WELL = "0000:19:00.0", "0000:1a:00.0"
# `-i ADDRESS --query-gpu=...` of the lost one prints $WORDS; the other's mode is in the file `mode`.
SMI = f"""
echo "$*" >>"$STATE/calls"
case "$*" in
  *"{LOST}"*--query-gpu*) echo "$WORDS"; exit 15 ;;
  *"{LOST}"*) echo "Unable to determine the device handle for GPU {LOST}: Unknown Error"; exit 15 ;;
  *--query-gpu*) cat "$STATE/mode" ;;
  *"-mig 1"*) echo Enabled >"$STATE/mode" ;;
  *-cgi*) echo "  MIG 7g.80gb     Device  0: (UUID: MIG-1)" >"$STATE/instances" ;;
  *-L*) cat "$STATE/instances" ;;
esac
"""


def apply(
    words: str, tmp_path: Path, smi: str = SMI, order: tuple[str, ...] = (LOST, WELL)
) -> subprocess.CompletedProcess[str]:
    tool(tmp_path, "nvidia-smi", smi)
    (tmp_path / "mode").write_text("Disabled\n")
    (tmp_path / "instances").write_text("")
    layout = tmp_path / "mig.conf"
    layout.write_text("# layout\n" + "".join(f"{gpu} 7g.80gb\n" for gpu in order))
    return subprocess.run(
        ("sh", "-s", "--", str(layout)),
        input=resources.script("mig/apply"),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATE": str(tmp_path), "WORDS": words},
        capture_output=True,
        text=True,
        check=False,
    )


NO_HANDLE = f"Unable to determine the device handle for GPU {LOST}: Unknown Error"


@pytest.mark.parametrize("words", ["[GPU is lost]", "[Unknown Error]", "[GPU requires reset]", "ERR!", NO_HANDLE])
def test_a_lost_gpu_is_named_and_the_healthy_one_is_partitioned(words: str, tmp_path: Path) -> None:
    done = apply(words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{LOST}: left out, nvidia-smi shows no MIG mode" in done.stderr
    assert "in use" not in done.stderr
    assert f"{WELL}: 7g.80gb" in done.stderr
    assert f"-i {LOST} -mig" not in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("words", ["", "Failed to initialize NVML: Unknown Error", "NVIDIA-SMI has failed"])
def test_an_nvidia_smi_that_fails_for_every_gpu_is_no_lost_gpu(words: str, tmp_path: Path) -> None:
    assert apply(words, tmp_path).returncode == 65


# Of one the instances are in use, the other waits for a reset.
MIXED = f"""
case "$*" in
  *"{LOST}"*--query-gpu*) echo Enabled ;;
  *"-L"*"{LOST}"*) echo "  MIG 1g.10gb     Device  0: (UUID: MIG-2)" ;;
  *"{LOST}"*) exit 1 ;;
  *"{WELL}"*--query-gpu=mig.mode.pending*) echo Enabled ;;
  *"{WELL}"*--query-gpu*) echo Disabled ;;
esac
"""


@pytest.mark.parametrize("order", [(LOST, WELL), (WELL, LOST)], ids=["it comes last", "it comes first"])
def test_a_gpu_that_waits_for_its_reset_hides_no_failure_of_another(order: tuple[str, ...], tmp_path: Path) -> None:
    done = apply("", tmp_path, MIXED, order)
    assert done.returncode == 65, done.stderr
    assert f"{WELL}: MIG mode is Enabled after a reset" in done.stderr


def test_a_gpu_that_waits_for_its_reset_is_told_by_the_exit_status(tmp_path: Path) -> None:
    assert apply("", tmp_path, MIXED, (WELL,)).returncode == 66


# One GPU of 8 memory slices. `gi` holds its GPU instances, `ci` those of them with compute instances, which -L lists.
# 3g.40gb takes 4 slices and 1g.10gb one; 6: nothing to destroy (nvidia-smi(1), RETURN VALUE).
ROOM = """
echo "$*" >>"$STATE/calls"
case "$*" in
  *--query-gpu*) cat "$STATE/mode" ;;
  *"-mig 1"*) echo Enabled >"$STATE/mode" ;;
  *"-mig 0"*) echo Disabled >"$STATE/mode" ;;
  *-dci*) [ -s "$STATE/ci" ] || exit 6; : >"$STATE/ci" ;;
  *-dgi*) [ -s "$STATE/gi" ] || exit 6; : >"$STATE/gi" ;;
  *-cgi*)
    for profile in $(echo "$5" | tr , ' '); do
      echo "$profile" >>"$STATE/gi"
      taken=$(($(grep -c 3g "$STATE/gi") * 4 + $(grep -c 1g "$STATE/gi")))
      if [ "$taken" -gt 8 ]; then sed -i '$d' "$STATE/gi"; exit 19; fi
      echo "$profile" >>"$STATE/ci"
    done ;;
  *-L*) sed 's/.*/  MIG &     Device  0: (UUID: MIG-1)/' "$STATE/ci" ;;
esac
"""


def partition(
    tmp_path: Path, wanted: str, *, mode: str, gi: str = "", ci: str = ""
) -> tuple[subprocess.CompletedProcess[str], str, list[str]]:
    """What the script said, then the GPU's mode and its GPU instances."""
    tool(tmp_path, "nvidia-smi", ROOM)
    (tmp_path / "mode").write_text(f"{mode}\n")
    for name, text in (("gi", gi), ("ci", ci)):
        (tmp_path / name).write_text("".join(f"{word}\n" for word in text.split()))
    conf = tmp_path / "mig.conf"
    conf.write_text(f"{WELL} {wanted}\n")
    done = subprocess.run(
        ("sh", "-s", "--", str(conf)),
        input=resources.script("mig/apply"),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, (tmp_path / "mode").read_text().strip(), (tmp_path / "gi").read_text().split()


def test_a_layout_without_room_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    had = "3g.40gb 1g.10gb"
    done, mode, instances = partition(tmp_path, "3g.40gb,3g.40gb,1g.10gb", mode="Enabled", gi=had, ci=had)
    assert (done.returncode, mode, instances) == (1, "Enabled", had.split()), done.stderr
    assert "no room for 3g.40gb,3g.40gb,1g.10gb" in done.stderr


def test_a_layout_without_room_leaves_no_gpu_in_mig_mode_that_was_whole(tmp_path: Path) -> None:
    done, mode, instances = partition(tmp_path, "3g.40gb,3g.40gb,1g.10gb", mode="Disabled")
    assert (done.returncode, mode, instances) == (1, "Disabled", []), done.stderr


def test_gpu_instances_without_compute_instances_are_cleared_too(tmp_path: Path) -> None:
    done, _, instances = partition(tmp_path, "3g.40gb,3g.40gb", mode="Enabled", gi="3g.40gb 1g.10gb")
    assert (done.returncode, instances) == (0, ["3g.40gb", "3g.40gb"]), done.stderr


def test_the_largest_instances_are_created_first(tmp_path: Path) -> None:
    partition(tmp_path, "1g.5gb,1g.10gb,1g.10gb+me,2g.20gb,3g.40gb", mode="Enabled")
    assert "-cgi 3g.40gb,2g.20gb,1g.10gb,1g.10gb+me,1g.5gb -C" in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("mode", ["[N/A]", "N/A", "[Not Supported]"])
def test_a_gpu_that_is_not_capable_of_mig_is_off_already(mode: str, tmp_path: Path) -> None:
    done, _, _ = partition(tmp_path, "off", mode=mode)
    assert done.returncode == 0, done.stderr
    assert "-mig " not in (tmp_path / "calls").read_text()


def test_every_gpu_gets_its_layout_after_the_controller_has_gone(tmp_path: Path) -> None:
    conf = tmp_path / "mig.conf"
    conf.write_text(f"{LOST} 7g.80gb\n{WELL} 7g.80gb\n")
    tool(tmp_path, "nvidia-smi", f'echo "$*" >>"$STATE/calls"\n{MIXED}')
    reads, writes = os.pipe()
    os.close(reads)
    subprocess.run(
        ("sh", "-s", "--", str(conf)),
        input=resources.script("mig/apply").encode(),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATE": str(tmp_path)},
        stdout=writes,
        stderr=writes,
        check=False,
    )
    os.close(writes)
    assert f"-i {WELL} -mig 1" in (tmp_path / "calls").read_text()
