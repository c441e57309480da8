"""Who is stuck at the GPUs, MPS, and what libnvidia-container sees: in every shell, and read from any text."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.gpu_users import parse_mps, parse_stuck
from gpunode.facts.toolkit import parse_toolkit
from gpunode.facts.wire import Section, Sections
from gpunode.model.facts import CliInfo, HostFacts, MpsProcess, StuckProcess
from gpunode.model.gpu_users import gpu_users
from tests.facts.hosts import SMI_XML, make_root, run_probe

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "ash")]
CLI = """#!/bin/sh
[ "$*" = '--load-kmods=false info' ] || exit 9
printf 'NVRM version:   610.57.04\\nCUDA version:   13.3\\n\\nDevice Index:   0\\nModel:          NRVM version: 1.2\\n'
"""
GPU, NULL = "/dev/nvidia0", "/dev/null"


@pytest.fixture(params=SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


def looked_at(root: Path, shell: Sequence[str] = ("sh",), **env: str) -> HostFacts:
    done = run_probe(shell, root, **env)
    assert (done.returncode, done.stderr) == (0, b"")
    return assemble(done.stdout, "gpu07")


def process(root: Path, pid: int, stat: str, *, holds: str = NULL, comm: str = "train", status: str = "") -> Path:
    """One that has this file open; `stat` is what stands behind its number."""
    directory = root / "proc" / str(pid)
    (directory / "fd").mkdir(parents=True)
    (directory / "fd" / "3").symlink_to(holds)
    for name, text in (("comm", comm), ("stat", f"{pid} {stat}"), ("status", status)):
        (directory / name).write_text(f"{text}\n")
    return directory


def thread(directory: Path, number: int, holds: str) -> None:
    files = directory / "task" / str(number) / "fd"
    files.mkdir(parents=True)
    (files / "3").symlink_to(holds)


WAITED = "voluntary_ctxt_switches:\t{}"


def stuck_host(root: Path, after: str = "") -> Path:
    """A program that waits in the kernel, its dead child, and others; nvidia-smi runs `after` between both looks."""
    make_root(root, {"nvidia-smi": f"#!/bin/sh\n{after}\ncat <<'END'\n{SMI_XML}END\n"})
    process(root, 4242, "(odd) Z 1) D 1 7", holds=GPU, status=WAITED.format(12))
    process(root, 4243, "(odd\\n) Z 4242 7")
    process(root, 4244, "(works) S 1 7", holds=GPU)
    process(root, 4245, "(reads a disk) D 1 7", status=WAITED.format(3))
    process(root, 4246, "(of another) Z 4245 7")
    left = process(root, 4250, "(left) Z 1 7", comm="left")
    thread(left, 4250, NULL)
    thread(left, 4251, GPU)
    other = process(root, 4260, "(left) Z 1 7", comm="left")
    thread(other, 4260, NULL)
    thread(other, 4261, NULL)
    return root


def test_what_waits_or_is_dead_at_both_looks_is_known(shell: tuple[str, ...], tmp_path: Path) -> None:
    seen = looked_at(stuck_host(tmp_path), shell).driver.stuck
    assert seen is not None
    assert [(one.pid, one.command, one.state, one.parent) for one in seen] == [
        (4242, "train", "D", None), (4243, "train", "Z", 4242), (4250, "left", "Z", None),
    ]  # fmt: skip
    assert all(0 <= one.seconds < 300 for one in seen)


def test_no_name_of_a_process_hides_another(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    ids = "Uid:\t{0}\t0\t0\t0\nGid:\t0\t0\t0\t0"
    for pid, uid, comm in (
        (100, 1000, "x\\c"),
        (101, 1000, "nvidia-smi"),
        (102, 0, "nv-hostengine"),
        (103, 111, "nvidia-persiste"),
    ):
        process(root, pid, "(x) S 1 7", holds=GPU, comm=comm, status=ids.format(uid))
    host = looked_at(root, shell)
    assert host.driver.busy == ("100 x\\c", "101 nvidia-smi", "102 nv-hostengine", "103 nvidia-persiste")
    assert host.driver.busy_uids == {"100": 1000, "101": 1000, "102": 0, "103": 111}
    assert gpu_users(host) == ("100 x\\c", "101 nvidia-smi")


@pytest.mark.parametrize(
    "after",
    [
        "echo '4242 (train) S 1 7' >{}/proc/4242/stat",
        "echo 'voluntary_ctxt_switches:\t13' >{}/proc/4242/status",
        "rm -r {}/proc/4242",
    ],
    ids=["it works again", "it waits for something else", "it has ended"],
)
def test_a_wait_of_a_moment_is_none(after: str, tmp_path: Path) -> None:
    seen = looked_at(stuck_host(tmp_path, after.format(tmp_path))).driver.stuck
    assert seen is not None
    assert 4242 not in [one.pid for one in seen]


def test_a_host_whose_gpus_nobody_was_seen_to_hold_says_so(tmp_path: Path) -> None:
    healthy = looked_at(make_root(tmp_path / "healthy"))
    assert (healthy.driver.stuck, healthy.driver.mps) == ((), ())
    unloaded = make_root(tmp_path / "unloaded")
    shutil.rmtree(unloaded / "sys/module/nvidia")
    assert looked_at(unloaded).driver.stuck is None


def test_mps_is_found_with_its_owner(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    ids = "Uid:\t{0}\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t{1}"
    for pid, uid, numbers in ((4711, 1000, "4711"), (4712, 0, "4712\t9\t1")):
        process(root, pid, "(m) S 1 1", comm="nvidia-cuda-mps", status=ids.format(uid, numbers))
    host = looked_at(root, shell)
    assert host.driver.mps == (MpsProcess(4711, 1000, False), MpsProcess(4712, 0, True))
    assert not host.ignored


def test_so_many_processes_that_are_called_mps_are_cut(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for pid in range(5000, 5030):
        process(root, pid, "(m) S 1 1", comm="nvidia-cuda-mps")
    seen = looked_at(root).driver.mps
    assert seen is not None
    assert (len(seen), seen[0].uid) == (20, None)


def test_libnvidia_container_is_asked_without_loading_a_module(shell: tuple[str, ...], tmp_path: Path) -> None:
    host = looked_at(make_root(tmp_path, {"nvidia-container-cli": CLI}), shell)
    assert host.toolkit.cli == CliInfo(0, "610.57.04")
    assert "cli_info" not in host.unread


MISMATCH = "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"


def test_why_it_fails_is_kept(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-container-cli": f"#!/bin/sh\necho '{MISMATCH}' >&2\nexit 1\n"})
    assert looked_at(root).toolkit.cli == CliInfo(1, None, MISMATCH)


@pytest.mark.parametrize(
    ("why", "says"),
    [("unloaded", None), ("suspended", None), ("silent", "nvidia-smi did not answer"), ("a user's", None)],
)
def test_it_is_not_asked_where_that_would_wake_or_load_or_hang(why: str, says: str | None, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    tools = {"nvidia-container-cli": f"#!/bin/sh\ntouch {mark}\n"}
    if why == "silent":
        tools["nvidia-smi"] = "#!/bin/sh\nsleep 20\n"
    root = make_root(tmp_path / "root", tools)
    if why == "unloaded":
        shutil.rmtree(root / "sys/module/nvidia")
    if why == "suspended":
        power = root / "sys/bus/pci/devices/0000:41:00.0/power"
        power.mkdir()
        (power / "runtime_status").write_text("suspended\n")
    if why == "a user's":
        (root / "usr/bin/nvidia-container-cli").chmod(0o777)
    host = looked_at(root, GPUNODE_SMI_LIMIT_S="1")
    assert not mark.exists()
    assert host.toolkit.cli in (None, CliInfo(127))
    assert host.unread.get("cli_info") == says


def test_an_answer_that_does_not_come_costs_its_limit(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-container-cli": "#!/bin/sh\nsleep 20\n"})
    host = looked_at(root, GPUNODE_SMI_LIMIT_S="1")
    assert host.toolkit.cli == CliInfo(124)
    assert host.unread["cli_info"] == "did not answer within its limit"


# ---- any text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "4242 D",
        "4242 R 3 holds x",
        "² D 3 holds x",
        "4242 D 9999999999999999999 holds x",
        "-1 Z",
        "D D D D D",
        "\x1b",
    ],
)
def test_a_line_that_is_none_is_no_process(text: str) -> None:
    assert parse_stuck(Sections({"stuck": Section(text + "\n")})) == ()
    assert parse_mps(Sections({"mps": Section(text + "\n")})) == ()


def test_what_was_not_read_is_not_empty() -> None:
    for sections in (Sections(), Sections({"stuck": Section("", None), "mps": Section("", 124)})):
        assert (parse_stuck(sections), parse_mps(sections)) == (None, None)


def test_a_command_may_hold_anything() -> None:
    line = "7 Z 0 threads a b \x1b[31m D"
    assert parse_stuck(Sections({"stuck": Section(line)})) == (StuckProcess(7, "a b \x1b[31m D", "Z", 0, None),)


@pytest.mark.parametrize(
    ("section", "cli"),
    [
        (Section("", None, "a GPU is suspended"), None),
        (Section("", 127), CliInfo(127)),
        (Section("", 0), CliInfo(0)),
        (Section("NVRM version:   \x1b[31m1\n", 0), CliInfo(0)),
        (Section("NVRM version:   595.91.07\nNVRM version: 1\n", 0), CliInfo(0, "595.91.07")),
        (Section("\n" + "x" * 9000, 1), CliInfo(1, None, "x" * 300)),
    ],
    ids=["not asked", "not there", "empty", "odd", "two", "long"],
)
def test_what_it_says_is_bounded(section: Section, cli: CliInfo | None) -> None:
    assert parse_toolkit(Sections({"cli_info": section})).cli == cli
