"""The rollback: bytes where nobody else wrote, gpunode's part where somebody did, and commands to run for the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from gpunode.apply.journal.for_undo import of_older
from gpunode.catalog.load import load_catalog
from gpunode.fleet.runs.shared import SharedParts
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.past import ABSENT, Past, PastFile
from gpunode.model.plan import ForUndo, Plan, Step
from gpunode.planner.resume import PATH as RESUME_PATH
from gpunode.planner.resume import UNIT as RESUME
from gpunode.planner.undo.plan import undo_plan
from tests.engines.hosts import PATHS, engine_facts, host_with
from tests.planner.engines.kubelets import node

DOCKER, CONTAINERD = PATHS["docker"], PATHS["containerd"]
NOUVEAU, PIN = "/etc/modprobe.d/gpunode-nouveau.conf", "/etc/apt/preferences.d/gpunode.pref"
OLD = '{\n    "debug": true\n}\n'
ADDED = (
    '    "runtimes": {\n        "nvidia": {\n            "path": "/usr/bin/nvidia-container-runtime"\n        }\n    }'
)
OURS = f'{{\n    "debug": true,\n{ADDED},\n    "default-runtime": "nvidia"\n}}\n'
THEIRS = OURS.replace('"debug": true', '"debug": true,\n    "mtu": 1400')


def sha(text: str | None) -> str:
    return ABSENT if text is None else hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def past_file(path: str, step: str, *, before: str | None, left: str | None, now: str | None, **more: Any) -> PastFile:
    """A file with these texts: before the first run, as gpunode left it, and as it is; None: absent."""
    facts = FileFacts(path) if now is None else FileFacts(path, now, sha(now), 0o644)
    backup = "" if before is None else f"/var/lib/gpunode/backup/r1{path}"
    file = PastFile(path, step, sha(before), sha(left), before, facts, backup, for_undo=of_older(step))
    return replace(file, **more)


def docker_file(now: str | None = OURS, before: str | None = OLD, **more: Any) -> PastFile:
    return past_file(DOCKER, "docker.default", before=before, left=OURS, now=now, **more)


def docker_past(*files: PastFile, **more: Any) -> Past:
    values: dict[str, Any] = {"runs": ("r1.1",), "engines": ("docker",), "defaults": {"docker": "runc"}, **more}
    return Past(journal=True, files=files, **values)


def docker_host(now: str | None = OURS, default: str = "nvidia", **more: Any) -> HostFacts:
    engine = engine_facts("docker", "26.1.5", effective_default=default, handlers=("runc", "nvidia"))
    return replace(host_with(engine, files={DOCKER: now}), **more)


def plan(host: HostFacts, past: Past, *, packages: bool = False) -> Plan:
    return undo_plan(host, past, load_catalog(), packages=packages)


def only_step(made: Plan) -> Step:
    assert made.undo is not None
    assert made.undo.left == ()
    (step,) = made.steps
    return step


def left(made: Plan) -> list[str]:
    assert made.undo is not None
    return [kept.text for kept in made.undo.left]


def puts(step: Step) -> list[str]:
    return [action.text for action in step.actions if isinstance(action, PutFile)]


def asked(step: Step) -> str:
    """The default that the last question to the daemon expects."""
    last = [action for action in step.actions if isinstance(action, Run) and "gpunode_verify" in action.stdin][-1]
    return last.argv[5]


def test_an_untouched_file_gets_its_bytes_back_and_the_daemon_its_default() -> None:
    made = plan(docker_host(), docker_past(docker_file()))
    step = only_step(made)
    assert step.id == "undo.docker.default"
    assert step.title == (
        "/etc/docker/daemon.json: restored; default runtime nvidia → runc; reload, no container restarts"
    )
    first = step.actions[0]
    assert isinstance(first, PutFile)
    assert (first.text, first.expect_sha256, first.validate) == (OLD, sha(OURS), None)
    assert puts(step)[-1] == OLD
    assert '"default-runtime": "runc"' in puts(step)[1]
    assert asked(step) == "runc"
    assert '-    "default-runtime": "nvidia"' in step.diff
    assert step.undo
    assert made.undo is not None
    assert made.undo.runs == ("r1.1",)


def test_hosts_with_equal_plans_share_their_steps() -> None:
    share, made = SharedParts(), plan(docker_host(), docker_past(docker_file()))
    one, two = (share.plan(plan(docker_host(), docker_past(docker_file()))) for _ in range(2))
    assert one == two == made
    assert one.steps[0] is two.steps[0] is not made.steps[0]


def test_crun_stays_crun() -> None:
    step = only_step(plan(docker_host(), docker_past(docker_file(), defaults={"docker": "crun"})))
    assert asked(step) == "crun"


def test_what_another_program_added_stays_and_the_new_text_is_validated() -> None:
    step = only_step(plan(docker_host(THEIRS), docker_past(docker_file(THEIRS))))
    first = step.actions[0]
    assert isinstance(first, PutFile)
    assert first.text == OLD.replace('"debug": true', '"debug": true,\n    "mtu": 1400')
    assert first.validate is not None
    assert "without gpunode's part" in step.title


def test_a_default_that_somebody_chose_since_is_theirs() -> None:
    text = THEIRS.replace('"default-runtime": "nvidia"', '"default-runtime": "crun"')
    step = only_step(plan(docker_host(text, default="crun"), docker_past(docker_file(text))))
    assert '"default-runtime": "crun"' in puts(step)[0]
    assert "nvidia" not in puts(step)[0]
    assert asked(step) == "crun"


def test_a_file_gpunode_made_goes_with_the_directory_it_made() -> None:
    file = docker_file(before=None, directories=1)
    step = only_step(plan(docker_host(), docker_past(file)))
    assert step.actions[0] == RemoveFile(DOCKER, sha(OURS))
    last = step.actions[-1]
    assert isinstance(last, Run)
    assert (last.argv, last.ok_codes) == (("rmdir", "/etc/docker"), (0, 1))


def test_a_file_gpunode_made_and_another_program_extended_keeps_the_extension() -> None:
    text = OURS.replace('"debug": true,\n', '"mtu": 1400,\n')
    mine = OURS.replace('    "debug": true,\n', "")
    file = past_file(DOCKER, "docker.default", before=None, left=mine, now=text, directories=1)
    step = only_step(plan(docker_host(text), docker_past(file)))
    assert puts(step)[0] == '{\n    "mtu": 1400\n}\n'
    assert not any(isinstance(a, Run) and a.argv[0] == "rmdir" for a in step.actions)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (docker_file("{broken"), "daemon.json:1:2"),
        (replace(docker_file(), now=FileFacts(DOCKER, unread="permission denied")), "permission denied"),
    ],
    ids=["it does not parse any more", "it cannot be read"],
)
def test_an_engines_file_that_cannot_be_freed_is_left_with_its_daemon(file: PastFile, said: str) -> None:
    made = plan(docker_host(), docker_past(file))
    assert [step.id for step in made.steps] == ["undo.note"]
    (text,) = left(made)
    assert said in text


def test_without_its_backup_the_file_is_freed_of_gpunodes_part() -> None:
    step = only_step(plan(docker_host(), docker_past(docker_file(old=None))))
    assert puts(step)[0] == OLD


@pytest.mark.parametrize(
    ("default", "cut_off"),
    [("nvidia", frozenset[str]()), (None, frozenset({"docker"}))],
    ids=["the daemon still has nvidia", "it does not answer, and the journal knows"],
)
def test_a_cut_off_undo_is_carried_on_where_the_file_is_back(default: Any, cut_off: frozenset[str]) -> None:
    step = only_step(plan(docker_host(OLD, default), docker_past(docker_file(OLD), cut_off=cut_off)))
    assert asked(step) == "runc"
    assert puts(step)[-1] == OLD


def test_a_cut_off_undo_restarts_the_daemon_though_only_an_empty_directory_is_left_to_remove() -> None:
    drop_in = "/etc/containerd/conf.d/99-nvidia.toml"
    file = past_file(drop_in, "containerd.default", before=None, left="x", now=None, directories=1)
    engine = engine_facts("containerd", "2.1.9", effective_default="nvidia")
    host = host_with(engine, files={CONTAINERD: "version = 3\n"})
    step = only_step(plan(host, Past(True, ("r1",), (file,), ("containerd",), {"containerd": "runc"})))
    assert any(isinstance(a, Run) and a.stdin.rstrip().endswith('gpunode_restart "$@"') for a in step.actions)
    assert asked(step) == "runc"


def test_with_file_and_daemon_back_there_is_nothing_to_do() -> None:
    made = plan(docker_host(OLD, default="runc"), docker_past(docker_file(OLD)))
    assert made.empty
    assert made.kept[-1].text == "what gpunode changed is restored already"


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (Past(), "it has no journal"),
        (Past(journal=True, last_undo="20261121T1-7.1"), "run 20261121T1-7 has undone everything before it"),
    ],
    ids=["no journal", "undone before"],
)
def test_nothing_to_undo_says_why(past: Past, said: str) -> None:
    made = plan(docker_host(), past)
    assert made.empty
    assert said.replace("it has no journal", "no journal") in made.kept[-1].text


def test_an_engine_that_does_not_run_only_gets_its_file_back() -> None:
    host = docker_host()
    host = replace(host, runtimes=(replace(host.runtimes[0], active=False, effective_default=None),))
    step = only_step(plan(host, docker_past(docker_file())))
    assert [type(action) for action in step.actions] == [PutFile]
    assert "docker.service is not running" in step.title


def test_a_drop_in_goes_after_the_file_that_imports_it_is_back() -> None:
    drop_in = "/etc/containerd/conf.d/99-nvidia.toml"
    files = (
        past_file(drop_in, "containerd.default", before=None, left="version = 3\n", now="version = 3\n", directories=1),
        past_file(
            CONTAINERD, "containerd.default", before="version = 3\n", left="imports = []\n", now="imports = []\n"
        ),
    )
    engine = engine_facts("containerd", "2.1.9", effective_default="nvidia")
    host = host_with(engine, files={CONTAINERD: "new\n"})
    past = Past(True, ("r1",), files, ("containerd",), {"containerd": "runc"})
    step = only_step(plan(host, past))
    assert [a.path for a in step.actions if isinstance(a, (PutFile, RemoveFile))] == [CONTAINERD, drop_in]
    assert asked(step) == "runc"
    ready = node("1.30.4", {}, runs=True)
    step = only_step(plan(replace(host, kubernetes=ready.kubernetes, services=ready.services), past))
    for actions in (step.actions, step.undo):
        assert "ask the running kubelet for its health" in [a.description for a in actions if isinstance(a, Run)]


def nouveau(now: str | None = "blacklist nouveau\n") -> PastFile:
    return past_file(NOUVEAU, "kernel.nouveau", before=None, left="blacklist nouveau\n", now=now)


def bare(host: HostFacts) -> HostFacts:
    return replace(host, kernel=replace(host.kernel, initramfs_tool="update-initramfs"), runtimes=())


def test_the_blacklist_goes_the_initramfs_is_rebuilt_and_what_comes_back_is_said() -> None:
    step = only_step(plan(bare(docker_host()), Past(True, ("r1",), (nouveau(),))))
    assert step.id == "undo.kernel.nouveau"
    remove, rebuild = step.actions
    assert remove == RemoveFile(NOUVEAU, sha("blacklist nouveau\n"))
    assert isinstance(rebuild, Run)
    assert rebuild.argv == ("update-initramfs", "-u", "-k", "all")
    assert step.title.endswith("rebuild the initramfs; a reboot loads nouveau again")


DRACUT = "/etc/dracut.conf.d/gpunode-nvidia.conf"


def test_what_dracut_was_told_goes_with_the_blacklist_and_the_initramfs_is_rebuilt_once() -> None:
    conf = past_file(DRACUT, "kernel.nouveau", before=None, left="omit_drivers\n", now="omit_drivers\n")
    step = only_step(plan(bare(docker_host()), Past(True, ("r1",), (nouveau(), conf))))
    removed = [action.path for action in step.actions if isinstance(action, RemoveFile)]
    assert removed == [DRACUT, NOUVEAU]
    assert [run.argv for run in step.actions if isinstance(run, Run)] == [("update-initramfs", "-u", "-k", "all")]
    assert step.title.endswith("rebuild the initramfs; a reboot loads nouveau again")


def test_a_blacklist_that_a_removal_took_away_is_restored_into_the_initramfs_too() -> None:
    was = past_file(NOUVEAU, "driver.remove", before="blacklist nouveau\n", left=None, now=None)
    step = only_step(plan(bare(docker_host()), Past(True, ("r1",), (replace(was, for_undo=ForUndo(initramfs=True)),))))
    assert isinstance(step.actions[-1], Run)
    assert step.actions[-1].argv == ("update-initramfs", "-u", "-k", "all")
    assert step.title.endswith("restored; rebuild the initramfs")


def test_a_hand_edited_file_without_a_structure_is_left_with_the_commands_to_run() -> None:
    made = plan(bare(docker_host()), Past(True, ("r1",), (nouveau("blacklist nouveau\nblacklist mine\n"),)))
    assert [step.id for step in made.steps] == ["undo.note"]
    assert left(made) == [
        f"{NOUVEAU} was changed by something else since, so it is not changed: rm {NOUVEAU} removes it, "
        "then update-initramfs -u -k all"
    ]


def test_a_file_that_somebody_removed_is_not_missed() -> None:
    assert plan(bare(docker_host()), Past(True, ("r1",), (nouveau(None),))).empty


def test_a_file_of_theirs_that_somebody_removed_stays_away_and_is_named() -> None:
    made = plan(docker_host(None, default="runc"), docker_past(docker_file(None)))
    (said,) = left(made)
    assert said == (
        "/etc/docker/daemon.json was removed by something else since: "
        "cp /var/lib/gpunode/backup/r1/etc/docker/daemon.json /etc/docker/daemon.json restores the old one"
    )


def test_a_file_that_gpunode_removed_comes_back_with_mode_and_owner() -> None:
    file = past_file("/etc/x.conf", "x.y", before="old", left=None, now=None, mode=0o600, owner="7:8")
    put, chown = only_step(plan(bare(docker_host()), Past(True, ("r1",), (file,)))).actions
    assert put == PutFile("/etc/x.conf", "old", mode=0o600, expect_sha256=None)
    assert isinstance(chown, Run)
    assert chown.argv == ("chown", "7:8", "/etc/x.conf")


def test_a_setup_that_waits_for_the_next_boot_goes_before_everything_else() -> None:
    """It would do again what is undone here."""
    waiting = {RESUME: ServiceFacts("loaded", "inactive", "dead", "enabled")}
    unit = past_file(RESUME_PATH, "reboot.resume", before=None, left="[Unit]\n", now="[Unit]\n")
    made = plan(replace(docker_host(), services=waiting), docker_past(docker_file(), unit))
    assert [step.id for step in made.steps] == ["resume.remove", "undo.docker.default"]
    assert [step.id for step in plan(docker_host(), docker_past(docker_file(), unit)).steps] == [
        "undo.docker.default",
        "undo.reboot.resume",
    ]


UNIT = "nvidia-persistenced.service"


@pytest.mark.parametrize(
    ("before", "now", "argv"),
    [
        (("disabled", "inactive"), ServiceFacts("loaded", "active", enabled="enabled"), ("disable", "--now", UNIT)),
        (("disabled", "active"), ServiceFacts("loaded", "active", enabled="enabled"), ("disable", UNIT)),
        (("enabled", "inactive"), ServiceFacts("loaded", "active", enabled="enabled"), None),
        (("disabled", "inactive"), ServiceFacts("loaded", "active", enabled="static"), None),
        (("disabled", "inactive"), ServiceFacts(), None),
        (("disabled", "active"), ServiceFacts("masked", "inactive", enabled="masked"), None),
    ],
    ids=[
        "started: stopped too",
        "ran before: goes on",
        "was enabled before",
        "cannot be disabled",
        "its package is gone",
        "masked by somebody since",
    ],
)
def test_services_that_setup_enabled(before: tuple[str, str], now: ServiceFacts, argv: tuple[str, ...] | None) -> None:
    made = plan(replace(bare(docker_host()), services={UNIT: now}), Past(True, ("r1",), services={UNIT: before}))
    found = [a.argv for step in made.steps for a in step.actions if isinstance(a, Run)]
    assert found == ([("systemctl", *argv)] if argv else [])


IMEX = "nvidia-imex.service"
MASKED = ServiceFacts("masked", "inactive", enabled="masked")


@pytest.mark.parametrize(
    ("before", "now", "argvs"),
    [
        (("enabled", "active"), MASKED, [("unmask", IMEX), ("enable", "--now", IMEX)]),
        (("enabled", "activating"), MASKED, [("unmask", IMEX), ("enable", "--now", IMEX)]),
        (("enabled", "inactive"), MASKED, [("unmask", IMEX), ("enable", IMEX)]),
        (("disabled", "active"), MASKED, [("unmask", IMEX), ("start", IMEX)]),
        (("disabled", "inactive"), MASKED, [("unmask", IMEX)]),
        (("", "inactive"), MASKED, [("unmask", IMEX)]),
        (("masked", "inactive"), MASKED, []),
        (("enabled", "active"), ServiceFacts("loaded", "active", enabled="enabled"), []),
    ],
    ids=[
        "ran",
        "was starting",
        "was enabled",
        "was started by hand",
        "was off",
        "was not there",
        "was masked",
        "unmasked since",
    ],
)
def test_services_that_setup_masked(before: tuple[str, str], now: ServiceFacts, argvs: list[tuple[str, ...]]) -> None:
    made = plan(replace(bare(docker_host()), services={IMEX: now}), Past(True, ("r1",), masked={IMEX: before}))
    found = [a.argv for step in made.steps for a in step.actions if isinstance(a, Run)]
    assert found == [("systemctl", *argv) for argv in argvs]
    again = [a.argv[1] for step in made.steps for a in step.undo if isinstance(a, Run)]
    assert again == (["disable", "mask"] if argvs else [])


def packaged(*names: str, held: tuple[str, ...] = (), **more: Any) -> HostFacts:
    installed = {name: PackageVersion("595.1-1") for name in names}
    return replace(bare(docker_host()), packages=PackageFacts("apt", installed, frozenset(held), **more))


def package_past(**more: Any) -> Past:
    versions: Mapping[str, str | None] = MappingProxyType({"nvidia-open": None, "curl": None, "dkms": "3.0-1"})
    pin = past_file(PIN, "driver.install", before=None, left="Pin\n", now="Pin\n")
    values = {"files": (pin,), "words": frozenset({"*nvidia*", "-y", "*"}), "inventory": "/inventory", **more}
    return Past(True, ("r1",), packages=versions, **values)


def test_packages_stay_with_their_repositories_unless_asked_for() -> None:
    made = plan(packaged("nvidia-open", "curl", "dkms"), package_past())
    assert made.empty
    assert made.kept[0].text == "nvidia-open, curl are not removed, nor their repositories (--packages removes them)"


def test_with_packages_packages_holds_and_repositories_go_in_this_order() -> None:
    key = "/etc/apt/keyrings/gpunode-cuda.asc"
    host = packaged(
        "nvidia-open", "dkms", "libfoo", held=("nvidia-open", "libnvidia-x", "libfoo", "nvidia-old"), keys={key: "1"}
    )
    past = package_past(held=frozenset({"nvidia-old"}), wrote=(key, "/etc/apt/keyrings/gone.asc"))
    made = plan(host, past, packages=True)
    erase, hold, repository = made.steps
    assert [step.id for step in made.steps] == ["undo.packages", "undo.packages.hold", "undo.repositories"]
    assert isinstance(hold.actions[0], Run)
    assert hold.actions[0].argv == ("apt-mark", "unhold", "libnvidia-x")
    assert isinstance(erase.actions[0], Run)
    assert erase.actions[0].argv == ("sh", "-s", "--", "/inventory", "nvidia-open")
    assert repository.actions == (RemoveFile(PIN, sha("Pin\n")), RemoveFile(key))
    assert made.kept[0].text == "versions are not changed: dkms was 3.0-1"


def test_what_setup_removed_is_named_with_the_command_that_asks_for_it() -> None:
    """The driver of another source goes before a new one comes, and only part of it has a name that is there again."""
    before = {"nvidia-driver-bin": "535.261.03-1", "nvidia-kernel-dkms": "535.261.03-1", "dkms": "3.0-1"}
    past = replace(package_past(), packages=MappingProxyType({**before, "nvidia-open": None}))
    made = plan(packaged("nvidia-open", "dkms"), past, packages=True)
    assert [(kept.id, kept.text) for kept in made.kept] == [
        ("packages.versions", "versions are not changed: dkms was 3.0-1"),
        (
            "packages.removed",
            "packages that were there before setup and are gone are not installed again: "
            "nvidia-driver-bin 535.261.03-1, nvidia-kernel-dkms 535.261.03-1 "
            "(apt-get install nvidia-driver-bin nvidia-kernel-dkms asks the host's repositories for them)",
        ),
    ]


@pytest.mark.parametrize(
    ("package", "steps"),
    [
        ("nvidia-container-toolkit-base", ["undo.packages", "undo.cdi"]),
        ("nvidia-open", ["undo.packages"]),  # the toolkit was there before, and its unit stays
    ],
)
def test_the_specification_of_the_toolkits_unit_goes_after_the_toolkit(package: str, steps: list[str]) -> None:
    spec = "/var/run/cdi/nvidia.yaml"
    host = replace(packaged(package), files={spec: FileFacts(spec, "kind: nvidia.com/gpu\n", "y")})
    past = Past(True, ("r1",), packages={package: None})
    made = plan(host, past, packages=True)
    assert [step.id for step in made.steps] == steps
    assert [a for step in made.steps[1:] for a in step.actions] == [RemoveFile(spec)] * (len(steps) - 1)
    assert plan(host, past).empty


def test_packages_that_an_engine_still_needs_stay() -> None:
    """A daemon.json that nobody can edit still names nvidia: without its runtime no container would start."""
    broken = docker_file("{broken", expected=None)
    past = package_past(files=(broken,), engines=("docker",), defaults={"docker": "runc"})
    host = replace(packaged("nvidia-open"), runtimes=docker_host().runtimes)
    made = plan(host, past, packages=True)
    assert [step.id for step in made.steps] == ["undo.note"]
    (kept,) = [kept for kept in made.kept if kept.id == "packages"]
    why = "docker still runs with nvidia as its default runtime"
    assert kept.text == f"nvidia-open are not removed, nor their pins and repositories: {why}"
    assert kept.by_hand == f"change that ({why}); then gpunode undo --packages"
    assert made.undo is not None
    assert made.undo.pending  # the journal holds these runs for that next undo


@pytest.mark.parametrize("active", [True, False])
def test_a_file_that_cannot_be_read_is_tried_again_also_where_it_keeps_its_daemon_down(active: bool) -> None:
    past = package_past(
        files=(docker_file("{broken", expected=None),), engines=("docker",), defaults={"docker": "runc"}
    )
    runtimes = tuple(replace(one, active=active) for one in docker_host().runtimes)
    made = plan(replace(packaged("nvidia-open"), runtimes=runtimes), past)
    assert made.undo is not None
    assert (len(made.undo.left), made.undo.pending) == (1, True)


@pytest.mark.parametrize(
    ("running", "restarts"),
    [(0, True), (3, False), (None, False)],
    ids=["nothing runs: restart", "containers run: reload", "not known: reload"],
)
def test_cdi_is_off_after_a_restart_where_that_ends_no_container(running: int | None, restarts: bool) -> None:
    text = OURS.replace('"debug": true', '"debug": true,\n    "features": {\n        "cdi": true\n    }')
    file = past_file(DOCKER, "docker.default", before=OLD, left=text, now=text)
    host = docker_host(text)
    host = replace(host, runtimes=(replace(host.runtimes[0], containers_running=running),))
    step = only_step(plan(host, docker_past(file)))
    asks = [action.argv for action in step.actions if isinstance(action, Run)]
    assert step.title.endswith("; restart") == restarts
    assert (("systemctl", "reload", "docker.service") in asks) != restarts
    assert asked(step) == "runc"


def test_a_users_own_docker_is_not_restarted_and_nor_is_the_hosts_in_its_place() -> None:
    text = OURS.replace('"debug": true', '"debug": true,\n    "features": {\n        "cdi": true\n    }')
    path = "/home/ann/.config/docker/daemon.json"
    known = ForUndo(engine="docker@ann")
    file = past_file(path, "docker@ann.default", before=OLD, left=text, now=text, run_as="1000:100", for_undo=known)
    engine = engine_facts("docker", "26.1.5", effective_default="nvidia", containers_running=0)
    engine = replace(engine, user="ann", owner="1000:100", config_path=path)
    past = docker_past(file, engines=("docker@ann",), defaults={"docker@ann": "runc"})
    step = only_step(plan(host_with(engine, files={path: text}), past))
    assert not [a for a in step.actions if isinstance(a, Run) and "systemctl restart" in a.description]
    assert "SIGHUP to ann's dockerd" in [a.description for a in step.actions if isinstance(a, Run)]
    assert step.title.endswith("reload, no container restarts")


def test_where_nothing_restarts_the_daemon_the_commands_to_run_are_told() -> None:
    engine = engine_facts("containerd", "2.1.9", effective_default="nvidia", binary="/usr/bin/containerd")
    host = replace(host_with(engine, files={CONTAINERD: "new\n"}), init="openrc")
    file = past_file(CONTAINERD, "containerd.default", before="version = 3\n", left="new\n", now="new\n")
    step = only_step(plan(host, Past(True, ("r1",), (file,), ("containerd",), {"containerd": "runc"})))
    assert [type(action) for action in step.actions] == [PutFile]
    assert step.by_hand.startswith("containerd must be started anew")
    assert step.by_hand.endswith("; /usr/bin/containerd &")


def test_a_file_that_a_tool_wrote_for_setup_goes() -> None:
    spec = "/etc/cdi/nvidia.yaml"
    host = replace(bare(docker_host()), files={spec: FileFacts(spec, "x", "y")})
    step = only_step(plan(host, Past(True, ("r1",), wrote=(spec, "/etc/cdi/gone.yaml"))))
    assert step.actions == (RemoveFile(spec),)


def test_what_is_in_no_file_is_named() -> None:
    made = plan(bare(docker_host()), Past(True, ("r1",), for_good={"mig-layout": "mig.layout"}))
    assert made.kept[0].text == "the MIG layout is not changed (gpunode setup --mig all=off removes it)"


def test_holds_on_packages_that_were_there_stay_and_are_named() -> None:
    past = Past(True, ("r1",), words=frozenset({"nvidia-open"}))
    made = plan(packaged("nvidia-open", held=("nvidia-open",)), past)
    assert made.kept[0].text == "nvidia-open remain pinned (--packages unpins them)"


def test_the_empty_directory_that_a_cut_off_undo_left_goes_and_no_daemon_is_bothered() -> None:
    file = docker_file(None, before=None, directories=1)
    step = only_step(plan(docker_host(None, default="runc"), docker_past(file)))
    (remove,) = step.actions
    assert isinstance(remove, Run)
    assert remove.argv == ("rmdir", "/etc/docker")
    assert step.title == "remove the empty /etc/docker"


def test_of_two_containerds_each_gets_its_own_file_default_and_restart_back() -> None:
    other, old = "/etc/containerd-gpu/config.toml", "version = 2\n"
    ours = (
        "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'nvidia'\n"
        "runtimes.nvidia = { runtime_type = 'io.containerd.runc.v2' }\n"
    )
    first = engine_facts("containerd", "1.7.24", effective_default="nvidia", handlers=("nvidia", "runc"))
    second = replace(first, config_path=other, unit="containerd-gpu.service", socket="/run/containerd-gpu/c.sock")
    past = Past(
        journal=True,
        runs=("r1.1",),
        files=(
            past_file(CONTAINERD, "containerd.default", before=old, left=ours, now=ours),
            past_file(other, "containerd@containerd-gpu.default", before=old, left=ours, now=ours),
        ),
        engines=("containerd", "containerd@containerd-gpu"),
        defaults={"containerd": "runc", "containerd@containerd-gpu": "crun"},
    )
    made = plan(host_with(first, second, files={CONTAINERD: ours, other: ours}), past)
    found = {}
    for step in made.steps:
        paths = [action.path for action in step.actions if isinstance(action, PutFile)]
        restarts = [
            a.description for a in step.actions if isinstance(a, Run) and a.description.startswith("systemctl restart")
        ]
        found[step.id] = (paths, restarts, asked(step))
    assert found == {
        "undo.containerd@containerd-gpu.default": ([other], ["systemctl restart containerd-gpu.service"], "crun"),
        "undo.containerd.default": ([CONTAINERD], ["systemctl restart containerd.service"], "runc"),
    }


REVISION, CURRENT = "/var/snap/microk8s/7964/args", "/var/snap/microk8s/current/args"


@pytest.mark.parametrize("pruned", [False, True], ids=["the old revision is there", "snapd pruned it"])
def test_after_a_refresh_of_its_snap_microk8s_template_of_now_is_restored(pruned: bool) -> None:
    name, old, ours = "containerd-template.toml", "version = 2\n", "version = 2\n# nvidia\n"
    now = None if pruned else ours
    file = past_file(f"{REVISION}/{name}", "microk8s.default", before=old, left=ours, now=now)
    engine = engine_facts("microk8s", "1.6.36", effective_default="nvidia", handlers=("nvidia", "runc"))
    host = host_with(engine, files={f"{CURRENT}/{name}": ours})
    past = docker_past(file, engines=("microk8s",), defaults={"microk8s": "runc"})
    put = next(a for a in only_step(plan(host, past)).actions if isinstance(a, PutFile))
    assert (put.path, put.text) == (f"{CURRENT}/{name}", old)


@pytest.mark.parametrize("edited", [False, True], ids=["as gpunode left it", "others wrote to it between the two runs"])
def test_microk8s_template_that_was_written_before_and_after_a_refresh_is_written_back_once(edited: bool) -> None:
    """The journal has it by two paths: two writes of one file, and the second found other bytes than it expected."""
    name, table = "containerd-template.toml", '[plugins."io.containerd.grpc.v1.cri".containerd]\n'
    old = f'version = 2\n{table}default_runtime_name = "runc"\n'
    first = old.replace('"runc"', '"nvidia"')
    found = f"{first}# site\n" if edited else first
    last = found.replace(table, f'[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n{table}')
    files = (
        past_file(f"{REVISION}/{name}", "microk8s.default", before=old, left=first, now=None),
        past_file(f"{CURRENT}/{name}", "microk8s.default", before=found, left=last, now=last),
    )
    engine = engine_facts("microk8s", "1.6.36", effective_default="nvidia", handlers=("nvidia", "runc"))
    past = docker_past(*files, engines=("microk8s",), defaults={"microk8s": "runc"})
    step = only_step(plan(host_with(engine, files={f"{CURRENT}/{name}": last}), past))
    (put,) = (action for action in step.actions if isinstance(action, PutFile))
    assert (put.path, put.expect_sha256) == (f"{CURRENT}/{name}", sha(last))
    assert (put.text == old) is not edited
    assert ("# site" in put.text) is edited
    assert 'default_runtime_name = "nvidia"' not in put.text
