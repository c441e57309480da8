"""rpm has one store of keys for all repositories: setup takes out of it what it put there itself, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.apply.execute import execute
from gpunode.apply.journal.past import read_past
from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import OsFacts
from gpunode.model.plan import Plan, Step
from gpunode.model.report import StepStatus
from gpunode.model.spec import Spec
from gpunode.packages import rpm
from gpunode.planner.plan import make_plan
from gpunode.planner.undo.plan import undo_plan
from tests.apply.machine import Machine
from tests.hostile.openpgp import Key, armored
from tests.planner.builders import T4, host, packages

RPM_KEYS = Path(resources.PACKAGE) / "shell" / "packages" / "rpm_keys.sh"
OURS, OLDER, OTHER = Key("vendor"), Key("stranger"), Key("third")
HOST = "keys.example"
WRITTEN = 1_000_000  # when the key file was
pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")

# Its store is the file `store`, a line of version, release and time of installation for each key.
RPM = """#!/bin/sh
cd "${0%/*}/.." || exit 9
case $1 in
  -q) [ -s store ] && cat store ;;
  --import) echo "import $2" >>told; cat new >>store ;;
  --erase)
    echo "$*" >>told
    shift 2
    for name; do grep -v "^$(echo "${name#gpg-pubkey-}" | tr - ' ') " store >left; mv left store; done ;;
esac
"""


class Store:
    """A host's rpm with the keys `known` since a second; `new` come in with the next import."""

    def __init__(
        self, directory: Path, known: dict[Key, int], new: dict[Key, int] | None = None, *, full: bool = False
    ):
        self.directory, self.full = directory, full
        self.keyring, self.lists = directory / "k.key", directory / "lists"
        for made in (directory / "bin", self.lists):
            made.mkdir()
        (directory / "bin/rpm").write_text(RPM)
        (directory / "bin/rpm").chmod(0o755)
        self.keyring.write_bytes(armored(OURS.block + OLDER.block))
        os.utime(self.keyring, (WRITTEN, WRITTEN))
        for name, keys in (("store", known), ("new", new or {})):
            (directory / name).write_text("".join(f"{self.name(k).replace('-', ' ')} {at}\n" for k, at in keys.items()))

    def name(self, key: Key) -> str:
        return f"{key.fingerprint.lower()[0 if self.full else -8 :]}-65533a40"

    def added(self, key: Key, at: int) -> str:
        return f"{self.name(key)},{at},{key.fingerprint.lower()},{HOST}"

    def entry(self, name: str, *lines: str) -> None:
        (self.lists / f"{name}.repo").write_text("".join(f"{line}\n" for line in (f"[{name}]", *lines)))

    def key_file(self, name: str, *keys: Key) -> str:
        (self.directory / name).write_bytes(armored(b"".join(key.block for key in keys)))
        return f"file://{self.directory / name}"

    def run(self, verb: str, *words: str) -> list[str]:
        env = {"PATH": f"{self.directory}/bin:{os.environ['PATH']}", "TMPDIR": str(self.directory)}
        argv = ("sh", str(RPM_KEYS), verb, f"{self.directory}/none:{self.lists}", *words)
        return subprocess.run(argv, check=True, env=env, capture_output=True, text=True).stdout.splitlines()

    def told(self) -> list[str]:
        return (self.directory / "told").read_text().splitlines() if (self.directory / "told").exists() else []

    def erased(self, *keys: Key) -> list[str]:
        return [f"--erase --allmatches {' '.join(f'gpg-pubkey-{self.name(key)}' for key in keys)}"]


@pytest.mark.parametrize("full", [False, True], ids=["rpm 4", "rpm 6"])
def test_a_roll_back_forgets_the_keys_that_came_with_the_file_and_no_other(tmp_path: Path, full: bool) -> None:
    store = Store(tmp_path, {OURS: WRITTEN + 1, OLDER: WRITTEN - 1, OTHER: WRITTEN + 2}, full=full)
    store.run("distrust", str(store.keyring), HOST)
    assert store.told() == store.erased(OURS)


@pytest.mark.parametrize(
    ("known", "imported", "added"),
    [
        ({}, True, [OURS, OLDER]),
        ({OLDER: 5}, True, [OURS]),
        ({OURS: 5, OLDER: 5}, False, []),
        ({OTHER: 5}, True, [OURS, OLDER]),
    ],
    ids=["none is there", "one is there", "both are there", "a stranger's is there"],
)
@pytest.mark.parametrize("full", [False, True], ids=["rpm 4", "rpm 6"])
def test_rpm_is_given_keys_that_it_lacks_and_tells_which_are_new(
    tmp_path: Path, known: dict[Key, int], imported: bool, added: list[Key], full: bool
) -> None:
    new = {key: 7 for key in (OURS, OLDER) if key not in known}
    store = Store(tmp_path, known, new, full=full)
    answer = "\n".join(store.run("trust", str(store.keyring), HOST))
    assert store.told() == ([f"import {store.keyring}"] if imported else [])
    assert sorted(rpm.added_keys(f"rpm --import {store.keyring}", answer)) == sorted(store.added(k, 7) for k in added)


@pytest.mark.parametrize("full", [False, True], ids=["rpm 4", "rpm 6"])
def test_what_setup_added_is_forgotten_at_once(tmp_path: Path, full: bool) -> None:
    store = Store(tmp_path, {OURS: 7, OLDER: 7, OTHER: 7}, full=full)
    store.run("forget", store.added(OURS, 7), store.added(OLDER, 7))
    assert store.told() == store.erased(OURS, OLDER)


def test_a_key_that_somebody_imported_anew_is_theirs(tmp_path: Path) -> None:
    store = Store(tmp_path, {OURS: 9})
    assert store.run("forget", store.added(OURS, 7), store.added(OLDER, 7)) == []
    assert store.told() == []


KEPT = {
    "it names a file with the key": ("gpgkey={ours}",),
    "among several files": ("gpgkey={other}, {ours}",),
    "on a line of its own": ("gpgkey={other}", "  {ours}"),
    "the file has a variable in its name": ("gpgkey={ours}".replace("ours", "variable"),),
    "nobody can say what is in the file": ("gpgkey=file:///nowhere/KEY",),
    "its key comes from where ours came from": (f"gpgkey=https://{HOST}/gpgkey",),
    "its packages do, and it names no key": (f"baseurl=http://me@{HOST.upper()}:8080/x",),
    "its list of mirrors does": (f"metalink=https://{HOST}/x",),
    "a switch that is no switch": ("enabled=2", "gpgkey={ours}"),
}
GOES = {
    "it is switched off": ("gpgkey={ours}", "enabled=0"),
    "with another word": ("enabled = False", "gpgkey = {ours}"),
    "its key is another": ("gpgkey={other}", "baseurl=https://elsewhere.example/x"),
    "the line is a comment": ("#gpgkey={ours}",),
    "only the path looks alike": (f"baseurl=https://elsewhere.example/{HOST}/",),
}


@pytest.mark.parametrize("verb", ["distrust", "forget"])
@pytest.mark.parametrize(
    ("lines", "kept"),
    [*((lines, True) for lines in KEPT.values()), *((lines, False) for lines in GOES.values())],
    ids=[*(f"kept: {name}" for name in KEPT), *(f"goes: {name}" for name in GOES)],
)
def test_a_key_is_kept_while_an_enabled_entry_uses_it(
    tmp_path: Path, verb: str, lines: tuple[str, ...], kept: bool
) -> None:
    store = Store(tmp_path, {OURS: WRITTEN})
    files = {"ours": store.key_file("KEY-9", OURS), "other": store.key_file("other", OTHER)}
    files["variable"] = files["ours"].replace("9", "$releasever")
    store.entry("third", *(line.format(**files) for line in lines))
    words = (store.added(OURS, WRITTEN),) if verb == "forget" else (str(store.keyring), HOST)
    said = store.run(verb, *words)
    assert store.told() == ([] if kept else store.erased(OURS))
    used = f"gpg-pubkey-{store.name(OURS)} is kept: third in {store.lists}/third.repo uses it"
    assert said == ([used] if kept else [])


# ---- from the journal to the plan of an undo


ADDED = "9cd0a493-65533a40,7,610c7b14e068a878070da4e99cd0a493d42d0685,developer.download.nvidia.com"


def imports(answer: str) -> Run:
    trust = rpm.trust("/etc/pki/rpm-gpg/gpunode-cuda.key", "https://keys.example/k")
    return replace(trust, argv=("echo", answer), stdin="")


def keys_of_undo(machine: Machine, *, packages_too: bool = True) -> tuple[str, ...]:
    """The keys that `undo --packages` hands to rpm_keys.sh on a host with dnf, by the machine's journal."""
    node = host(T4, packages=packages({}, manager="dnf"))
    past = read_past(machine, packages=packages_too)
    plan = undo_plan(node, past, load_catalog(), packages=packages_too)
    runs = [action for step in plan.steps for action in step.actions if isinstance(action, Run)]
    forgets = [run for run in runs if "forget" in run.argv]
    assert len(forgets) <= 1
    return forgets[0].argv[5:] if forgets else ()


def carry_out(machine: Machine, *steps: Step) -> list[StepStatus]:
    plan = Plan("testhost", Spec(), "", steps=steps)
    results = execute(plan, machine, run_id="r1", on_event=lambda _: None, stop=lambda: False, pause=lambda _: None)
    return [result.status for result in results]


def test_undo_forgets_what_the_journal_says_was_added(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    carry_out(machine, Step("repo.cuda", "t", "w", (imports(f"added {ADDED}"),)))
    assert keys_of_undo(machine) == (ADDED,)
    assert keys_of_undo(machine, packages_too=False) == ()


def test_a_key_that_was_there_before_is_none_of_undos(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    carry_out(machine, Step("repo.cuda", "t", "w", (imports("rpm has the keys of k already"),)))
    assert keys_of_undo(machine) == ()


def test_another_commands_answer_names_no_key(tmp_path: Path) -> None:
    """A mirror decides what packages are called, and so what the resolver's answer holds."""
    machine = Machine(tmp_path)
    resolver = Run(("echo", f"added {ADDED}"), description="ask dnf what it would change", record_output=True)
    carry_out(machine, Step("driver.install", "t", "w", (resolver,)))
    assert keys_of_undo(machine) == ()


def test_a_key_that_was_taken_back_is_no_longer_undos(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    repository = Step("repo.cuda", "t", "w", (imports(f"added {ADDED}"),), serves=("driver",))
    refused = Step("driver.install", "t", "w", (Run(("false",)),), installs="driver")
    assert carry_out(machine, repository, refused) == [StepStatus.UNDONE, StepStatus.FAILED]
    assert keys_of_undo(machine) == ()


def test_an_undone_key_is_forgotten_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    carry_out(machine, Step("repo.cuda", "t", "w", (imports(f"added {ADDED}"),)))
    plan = undo_plan(
        host(T4, packages=packages({}, manager="dnf")),
        read_past(machine, packages=True),
        load_catalog(),
        packages=True,
    )
    assert "gpg-pubkey-9cd0a493-65533a40 from rpm's keys" in plan.steps[-1].title
    done = Plan("testhost", Spec(), "", steps=(Step("undo.repositories", "t", "w", ()),), undo=plan.undo)
    before = {"undo": {"runs": ["r1"], "packages": True}}
    execute(done, machine, run_id="r2", on_event=lambda _: None, stop=lambda: False, before=before)
    assert keys_of_undo(machine) == ()


def test_the_key_of_what_the_driver_draws_on_goes_when_that_step_fails() -> None:
    """RHEL's EPEL: its package is checked against a key that is imported for it."""
    node = replace(host(T4, os="rocky-9"), os=OsFacts("rhel", "9.4", ("fedora",)))
    step = next(s for s in make_plan(node, Spec(), load_catalog()).steps if s.id == "repo.prerequisites")
    keyring = "/etc/pki/rpm-gpg/gpunode-prerequisites.key"
    undo = [action.argv[3:] for action in step.undo if isinstance(action, Run)]
    assert undo == [("distrust", rpm.LISTS, keyring, "dl.fedoraproject.org"), (keyring,)]
