"""The script of a plan under dash and busybox: it leaves what the engine leaves, and refuses what it refuses."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import sha256
from gpunode.apply.journal.entries import open_steps, parse_journal
from gpunode.apply.journal.snapshot import before_values
from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.export.script import script
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.model.action import Action, PutFile, Reboot, RemoveFile, Run
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from tests.apply.machine import Machine
from tests.golden_text import EXAMPLES

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the script is for root")
SHELLS: list[tuple[str, ...]] = [("dash",), ("busybox", "sh")]
NAME = Path("/proc/sys/kernel/hostname").read_text().strip()
NO_PACKAGES = PackageFacts()
BROKEN = Run(("sh", "-c", "echo it is broken >&2; exit 3"))
Result = subprocess.CompletedProcess[str]


def os_facts() -> OsFacts:
    words = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return OsFacts(words["ID"].strip('"'), words.get("VERSION_ID", "").strip('"'))


def this_host(packages: PackageFacts = NO_PACKAGES) -> HostFacts:
    return HostFacts("testhost", NAME, os_facts(), KernelFacts(platform.release()), root=True, packages=packages)


def plan_of(*steps: Step, **more: object) -> Plan:
    return Plan("testhost", Spec(), "", steps=steps, hostname=NAME, **more)  # type: ignore[arg-type]


def step(id: str, *actions: Action, undo: tuple[Action, ...] = (), **more: object) -> Step:
    return Step(id, f"title of {id}", "because", actions, undo, **more)  # type: ignore[arg-type]


def rewrite(path: Path, text: str) -> PutFile:
    return PutFile(str(path), text, expect_sha256=sha256(path.read_bytes()) if path.exists() else None)


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    shell: tuple[str, ...] = request.param
    return Machine(tmp_path / "machine", shell)


def run(machine: Machine, plan: Plan, *words: str, host: HostFacts | None = None) -> Result:
    (file,) = script(plan, host or this_host(), "the plan as a person reads it")
    machine.root.mkdir(exist_ok=True)
    path = machine.root / file.name
    path.write_bytes(machine.moved(file.data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))
    return subprocess.run(
        [*machine.shell, str(path), *words], capture_output=True, text=True, errors="replace", timeout=120, check=False
    )


def told(text: str) -> list[dict[str, object]]:
    """A journal without what differs from run to run: ids, and where the backup is."""
    entries = [dict(entry) for entry in parse_journal(text)]
    for entry in entries:
        for name in ("run", "backup", "error"):
            if name in entry:
                entry[name] = re.sub(r".*/", "", str(entry[name])) if name == "backup" else bool(entry[name])
        entry.pop("after" if entry["kind"] == "restore" else "", None)
        entry.pop("run_as", None)
    return entries


class Files:
    """Three files of a host, one with other modes, and a plan for them."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.kept, self.gone, self.new = place / "kept", place / "gone", place / "made" / "new"
        self.kept.write_text("old kept")
        self.kept.chmod(0o640)
        self.gone.write_text("old gone")
        self.mark = place / "undone"

    def plan(self, broken: int | None, *last: Step) -> Plan:
        actions: list[Action] = [
            rewrite(self.kept, "one"),
            PutFile(str(self.kept), "two\n", expect_sha256=sha256(b"one")),
            RemoveFile(str(self.gone), sha256(b"old gone")),
            PutFile(str(self.new), "text"),
            Run(("sh", "-c", "echo 'a \"b\" \\ c'; cat"), stdin="read\n", record_output=True, description="it's asked"),
            Run(("sh", "-c", 'exit "$CODE"'), env=(("CODE", "7"),), ok_codes=(0, 7), detach=True),
        ]
        if broken is not None:
            actions.insert(broken, BROKEN)
        undo = (Run(("sh", "-c", f"cat {self.kept} >{self.mark}")),)
        return plan_of(step("a", Run(("true",))), step("b", *actions, undo=undo), *last)

    def left(self) -> dict[str, object]:
        paths = (self.kept, self.gone, self.new, self.mark)
        return {path.name: (path.read_bytes(), path.stat().st_mode) for path in paths if path.exists()}


@pytest.mark.parametrize("broken", [None, *range(7)])
def test_files_and_journal_are_what_the_engine_leaves(machine: Machine, tmp_path: Path, broken: int | None) -> None:
    mine, theirs = Files(tmp_path / "files"), tmp_path / "kept apart"
    plan = mine.plan(broken, step("c", Run(("true",))))
    engine = Machine(tmp_path / "engine", machine.shell)
    results = execute(
        plan,
        engine,
        run_id="20261127T060000Z-1.1",
        on_event=lambda event: None,
        stop=lambda: False,
        before=before_values(this_host(), plan),
        pause=lambda pause_s: None,
    )
    left = mine.left()
    (tmp_path / "files").rename(theirs)
    again = Files(tmp_path / "files")

    done = run(machine, plan, "--yes")

    assert done.returncode == (0 if broken is None else 1), done.stderr
    assert again.left() == left
    assert told(machine.journal) == told(engine.journal)
    assert open_steps(parse_journal(machine.journal)) == {}
    assert ("it is broken" in done.stderr) == (broken is not None)
    assert ("skipped 3/3 c" in done.stdout) == (results[2].status.value == "skipped")
    assert not (machine.root / "run" / "lock").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no end of line",
        b"a 'quoted' \"$HOME\" `id` \\n\n",
        b"END_OF_TEXT\nEND_OF_TEXT",
        b"x\nEND_OF_TEXT\ny\n",
        b"\xff\xfe\n",
    ],
    ids=repr,
)
def test_every_byte_of_a_file_arrives(machine: Machine, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "it's a file"
    action = PutFile(str(path), text.decode("utf-8", "surrogateescape"), mode=0o600)
    assert run(machine, plan_of(step("a", action)), "--yes").returncode == 0
    assert path.read_bytes() == text
    assert path.stat().st_mode & 0o777 == 0o600


def changed(path: Path) -> None:
    path.write_text("mine")


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("how", [changed, removed])
def test_a_file_that_is_not_as_the_plan_saw_it_stops_all_of_it(
    machine: Machine, tmp_path: Path, how: Callable[[Path], None]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.write_text("old")
    plan = plan_of(step("a", PutFile(str(first), "new")), step("b", rewrite(second, "new")))
    how(second)
    done = run(machine, plan, "--yes")
    assert done.returncode == 7
    assert str(second) in done.stderr
    assert not first.exists()
    assert not machine.state.exists()


def test_nothing_is_changed_unless_it_is_asked_for(machine: Machine, tmp_path: Path) -> None:
    plan = plan_of(step("a", PutFile(str(tmp_path / "new"), "new")))
    for words in ((), ("--show",)):
        shown = run(machine, plan, *words)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "the plan as a person reads it" in shown.stdout
    for wrong in (("--no",), ("--yes", "--yes")):
        assert run(machine, plan, *wrong).returncode == 2
    assert not (tmp_path / "new").exists()
    assert not machine.state.exists()


def test_twice_is_no_change_and_a_host_that_changed_since_is_told(machine: Machine, tmp_path: Path) -> None:
    path, count = tmp_path / "new", tmp_path / "count"
    plan = plan_of(step("a", PutFile(str(path), "new"), Run(("sh", "-c", f"echo ran >>{count}"))))
    assert run(machine, plan, "--yes").returncode == 0
    journal = machine.journal
    again = run(machine, plan, "--yes")
    assert (again.returncode, count.read_text(), machine.journal) == (0, "ran\n", journal)
    assert "nothing to do" in again.stdout
    path.write_text("theirs")
    assert run(machine, plan, "--yes").returncode == 7
    assert (path.read_text(), count.read_text()) == ("theirs", "ran\n")


@pytest.mark.skipif(not Path("/usr/bin/dpkg-query").exists(), reason="its packages are dpkg's")
def test_packages_are_as_the_plan_saw_them(machine: Machine, tmp_path: Path) -> None:
    argv = ("dpkg-query", "-W", "-f", "${Package} ${Version}\n", "gcc-*-base")  # of libgcc-s1, which every Debian has
    here, version = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0].split()
    mark = tmp_path / "mark"
    plan = plan_of(step("a", Run(("touch", str(mark)), packages=(here, "nvidia-none", "coreutils"))))
    for seen in ({}, {here: "0.1"}, {here: version, "nvidia-none": "1"}):
        installed = {name: PackageVersion(text) for name, text in seen.items()}
        done = run(machine, plan, "--yes", host=this_host(PackageFacts(manager="apt", installed=installed)))
        assert done.returncode == 7
        assert f"package {'nvidia-none' if 'nvidia-none' in seen else here}" in done.stderr
        assert "coreutils" not in done.stderr, "it is of those that no plan sees"
    assert not mark.exists()
    seen_now = PackageFacts(manager="apt", installed={here: PackageVersion(version)})
    assert run(machine, plan, "--yes", host=this_host(seen_now)).returncode == 0
    assert mark.exists()
    (inventory,) = machine.state.glob("backup/*/packages")
    assert "coreutils" in inventory.read_text().split(), "what undo tells later packages by"


def test_another_host_and_another_kernel_are_refused(machine: Machine, tmp_path: Path) -> None:
    plan = plan_of(step("a", PutFile(str(tmp_path / "new"), "new")))
    assert run(machine, replace(plan, hostname="gpu99"), "--yes").returncode == 2
    for other in (
        replace(this_host(), kernel=KernelFacts("1.0")),
        replace(this_host(), os=OsFacts("debian", "99")),
    ):
        assert run(machine, plan, "--yes", host=other).returncode == 7
    assert not (tmp_path / "new").exists()


def test_nothing_of_the_plan_is_obeyed_by_a_terminal(machine: Machine, tmp_path: Path) -> None:
    odd = "\x1b]0;x\x07\u202e\x9b31m"
    plan = plan_of(
        replace(step("a", PutFile(str(tmp_path / "new"), "new")), title=f"write{odd}"), reboot=f"a driver{odd}"
    )
    (file,) = script(replace(plan, hostname=f"gpu99\n{odd}"), this_host(), "")
    assert "for no other" in file.data.decode().split("\n")[1]
    assert "gpu99" not in file.data.decode().split("\n")[1]
    refused = run(machine, replace(plan, hostname=f"gpu99{odd}"), "--yes")
    done = run(machine, plan, "--yes")
    assert (refused.returncode, done.returncode) == (2, 6)
    assert "write]0;x31m" in done.stdout
    assert (refused.stdout + refused.stderr + done.stdout + done.stderr).replace("\n", "").isprintable()


def held(machine: Machine, age_s: int) -> Path:
    lock = machine.root / "run" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text('{"host": "other", "pid": 1, "token": "1-a", "user": "root"}\n')
    os.utime(lock, (lock.stat().st_mtime - age_s,) * 2)
    return lock


@pytest.mark.parametrize("word", ["--yes", "--show"])
def test_a_host_on_which_another_gpunode_works_is_left_alone(machine: Machine, tmp_path: Path, word: str) -> None:
    lock = held(machine, 5)
    done = run(machine, plan_of(step("a", PutFile(str(tmp_path / "new"), "new"))), word)
    assert done.returncode == 8
    assert "other" in done.stderr
    assert lock.exists()
    assert not (tmp_path / "new").exists()


def test_a_lock_without_a_heartbeat_is_taken_over(machine: Machine, tmp_path: Path) -> None:
    lock = held(machine, 90)
    assert run(machine, plan_of(step("a", PutFile(str(tmp_path / "new"), "new"))), "--yes").returncode == 0
    assert not lock.exists()


def test_a_step_that_an_earlier_run_left_open_is_gpunodes_to_end(machine: Machine, tmp_path: Path) -> None:
    machine.state.mkdir(parents=True)
    begun = {"kind": "step-begin", "run": "20261101T000000Z-7.1", "step": "docker.default", "title": "t"}
    ended = [{**begun, "step": "a"}, {**begun, "kind": "step-end", "step": "a", "status": "done"}]
    (machine.state / "journal.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (*ended, begun)))
    done = run(machine, plan_of(step("b", PutFile(str(tmp_path / "new"), "new"))), "--yes")
    assert done.returncode == 1
    assert "docker.default" in done.stderr
    assert '"a"' not in done.stderr
    assert not (tmp_path / "new").exists()


def test_what_only_serves_a_step_that_failed_goes_back_as_well(machine: Machine, tmp_path: Path) -> None:
    repository, log = tmp_path / "cuda.sources", tmp_path / "log"
    plan = plan_of(
        step(
            "repo.cuda",
            PutFile(str(repository), "deb"),
            undo=(Run(("sh", "-c", f"echo refreshed >>{log}")),),
            serves=("driver",),
        ),
        step("kernel.headers", Run(("sh", "-c", f"echo headers >>{log}"))),
        step("driver.install", BROKEN, installs="driver"),
    )
    done = run(machine, plan, "--yes")
    assert done.returncode == 1
    assert "repo.cuda: rolled back" in done.stdout
    assert not repository.exists()
    assert log.read_text() == "headers\nrefreshed\n"


def test_a_rollback_that_fails_is_said_with_what_to_restore(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    breaks = Run(("sh", "-c", f"rm -rf {machine.state}/backup; exit 1"))
    done = run(machine, plan_of(step("a", rewrite(path, "new"), breaks)), "--yes")
    assert done.returncode == 5
    assert f"{path} could not be restored" in done.stderr
    assert "its old bytes are in" in done.stderr
    undo = (Run(("false",), description="start it again"),)
    done = run(machine, plan_of(step("b", PutFile(str(tmp_path / "b"), "b"), BROKEN, undo=undo)), "--yes")
    assert done.returncode == 5
    assert "start it again ended with code 1" in done.stderr


def test_a_candidate_that_its_daemon_refuses_is_not_put_in_place(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text("{}")
    validate = Run(("sh", "-c", 'grep -q old "$1" || { echo unknown key; exit 1; }', "sh", "{candidate}"))
    action = PutFile(str(path), "new", expect_sha256=sha256(b"{}"), validate=validate)
    restarted = tmp_path / "restarted"
    done = run(machine, plan_of(step("a", action, undo=(Run(("touch", str(restarted))),))), "--yes")
    assert done.returncode == 1
    assert "unknown key" in done.stderr
    assert path.read_text() == "{}"
    assert not restarted.exists(), "a daemon is restarted although nothing was changed"
    kinds = [entry["kind"] for entry in parse_journal(machine.journal)]
    assert kinds.index("file") < kinds.index("restore"), "as the engine's journal has it: an undo has nothing to do"


def test_a_write_that_fails_after_the_rename_is_rolled_back(machine: Machine, tmp_path: Path) -> None:
    class Late(Machine):
        def moved(self, script: str) -> str:
            text = super().moved(script)
            looks = '[ "$(seen "$resolved")" = "$want" ] || failed'
            assert looks in text
            return text.replace(looks, "false || failed")

    path = tmp_path / "config"
    path.write_text("old")
    done = run(Late(machine.root, machine.shell), plan_of(step("a", rewrite(path, "new"))), "--yes")
    assert (done.returncode, path.read_text()) == (1, "old")
    assert open_steps(parse_journal(machine.journal)) == {}


def interrupted(machine: Machine, plan: Plan, at: Path, *, group: bool) -> tuple[int, str]:
    """Its exit code and what it said; ^C came as soon as `at` was there, to the script or to all in its terminal."""
    (file,) = script(plan, this_host(), "")
    machine.root.mkdir(exist_ok=True)
    path = machine.root / file.name
    path.write_text(machine.moved(file.data.decode()))
    with subprocess.Popen(
        [*machine.shell, str(path), "--yes"], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        end = time.monotonic() + 60
        while not at.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    return process.returncode, said


def test_it_stops_after_the_step_that_is_under_way(machine: Machine, tmp_path: Path) -> None:
    at, last = tmp_path / "begun", tmp_path / "last"
    first = Run(("sh", "-c", f"touch {at}; sleep 1"))
    plan = plan_of(step("a", PutFile(str(tmp_path / "new"), "new"), first), step("b", PutFile(str(last), "last")))
    code, said = interrupted(machine, plan, at, group=False)
    assert (code, "skipped 2/2 b" in said) == (1, True)
    assert (tmp_path / "new").exists()
    assert not last.exists()
    assert parse_journal(machine.journal)[-1]["status"] == "stopped"


def test_a_package_transaction_comes_to_its_end_whatever_is_typed(machine: Machine, tmp_path: Path) -> None:
    at, done = tmp_path / "begun", tmp_path / "done"
    slow = Run(("sh", "-c", f"touch {at}; sleep 2; touch {done}"), detach=True)
    code, said = interrupted(machine, plan_of(step("a", slow), step("b", Run(("true",)))), at, group=True)
    assert (code, "skipped 2/2 b" in said, done.exists()) == (1, True, True)
    assert [e["status"] for e in parse_journal(machine.journal) if e["kind"] == "step-end"] == ["done"]
    assert not (machine.root / "run" / "lock").exists()


def test_a_command_is_tried_again_as_often_as_the_plan_says(machine: Machine, tmp_path: Path) -> None:
    count = tmp_path / "count"
    thrice = Run(("sh", "-c", f"echo >>{count}; [ $(wc -l <{count}) -ge 3 ]"), retry=(0.1, 0.1, 0.1))
    assert run(machine, plan_of(step("a", thrice)), "--yes").returncode == 0
    assert count.read_text() == "\n" * 3


def test_a_reboot_is_a_persons_and_is_told_until_it_was_made(machine: Machine, tmp_path: Path) -> None:
    plan = plan_of(step("a", PutFile(str(tmp_path / "new"), "new")), reboot="the old driver is loaded")
    for _ in range(2):
        done = run(machine, plan, "--yes")
        assert done.returncode == 6
        assert "reboot this host: the old driver is loaded" in done.stdout
    (record,) = (machine.state / "scripts").iterdir()
    lines = record.read_text().splitlines()
    record.write_text("\n".join(["another-boot", *lines[1:]]) + "\n")
    assert run(machine, plan, "--yes").returncode == 0


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Reboot(), "reboots the host in the middle"),
        (PutFile("/etc/containerd/config.toml", '[x.auth]\npassword = "hunter2"\n'), "holds a password"),
    ],
)
def test_what_a_script_cannot_do_is_refused_by_the_steps_name(action: Action, why: str) -> None:
    with pytest.raises(UnsupportedHost) as refused:
        script(plan_of(step("a.step", action)), this_host(), "")
    assert "a.step" in str(refused.value)
    assert why in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_what_is_decided_once_packages_are_in_is_refused_with_two_scripts() -> None:
    crio = assemble(load_recording(EXAMPLES / "el9-crio-a100"), "node")
    with pytest.raises(UnsupportedHost, match=r"crio\.default is decided in the middle: crio gets nvidia") as refused:
        script(make_plan(crio, Spec(), load_catalog()), crio, "")
    assert "--only driver,toolkit, and another one" in refused.value.remedy.text
    first = Spec(only=("driver", "toolkit"))
    assert script(make_plan(crio, first, load_catalog()), crio, "")
