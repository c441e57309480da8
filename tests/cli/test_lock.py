"""gpunode lock: a host is as its own lock says, others are planned like it, and a stranger's lock asks for no trust."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks.expect.settings import settings
from gpunode.checks.expect.snapshot import snapshot
from gpunode.cli.app import main
from gpunode.errors import UsageError
from gpunode.model.facts import HostFacts
from gpunode.specfile import LONGEST, load_expectation, lock_of, lock_text, parse_lock
from tests.checks import hosts as h

HOSTS = Path(__file__).parents[2] / "examples" / "hosts"
READY, BARE = str(HOSTS / "debian12-ready"), str(HOSTS / "debian12-l4")
HEAD = "schema: gpunode.lock/1\n"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lock") / "gpu.lock"
    assert main(["lock", "--recorded", READY, "--output", str(path)]) == 0
    return path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("slug", ["debian12-ready", "ubuntu2404-mig-a100", "rocky10-b200", "debian12-no-gpu"])
def test_a_host_is_as_its_own_lock_says(slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpu.lock"
    assert main(["lock", "--recorded", str(HOSTS / slug), "--output", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    capsys.readouterr()
    assert main(["check", "--recorded", str(HOSTS / slug), "--against", str(path), "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["hosts"][0]["checks"]
    assert [one["id"] for one in checks if one["outcome"] == "pass"]
    assert not [one["id"] for one in checks if one["outcome"] == "finding"]


@pytest.mark.parametrize(
    "slug", ["rocky9-vmware-vgpu", "ubuntu2204-azure-nvadsa10", "ubuntu2204-jetson-orin", "ubuntu2404-lxc-guest"]
)
def test_a_lock_asks_for_no_driver_that_comes_with_the_platform(slug: str, tmp_path: Path) -> None:
    path, host = tmp_path / "lock.yaml", str(HOSTS / slug)
    assert main(["lock", "--recorded", host, "--output", str(path)]) == 0
    setup = parse_lock(path.read_text()).setup
    assert not {"driver", "flavour", "driver_source", "hold"} & setup.keys()
    assert main(["plan", "--recorded", host, "--lock", str(path)]) == main(["plan", "--recorded", host])


def test_all_of_a_whole_host_is_in_its_lock_and_is_read_back() -> None:
    wanted, unsettled = settings(h.READY)
    assert unsettled == {"mig": "no GPU is partitioned"}
    expected, unknown = snapshot(h.READY, load_catalog())
    assert unknown == {}
    data, odd = lock_of(wanted, expected, "gpunode 0", "2026-11-27T00:00:00Z")
    assert odd == ()
    for text in (lock_text(data), json.dumps(data)):
        read = parse_lock(text)
        assert dict(read.setup) == wanted
        assert dict(read.expected) == expected
    assert (wanted["driver"], wanted["runtime"], wanted["default"], wanted["cdi"], wanted["hold"]) == (
        h.V, "docker,containerd", "true", "true", "false",
    )  # fmt: skip


def test_a_gpu_in_mig_mode_without_an_instance_is_not_locked_as_off() -> None:
    empty = h.smi(h.seen(mig_mode="Enabled", mig_pending="Enabled"))
    why = f"{h.GPU.address} is in MIG mode without an instance"
    for keys, unknown in (settings(empty), snapshot(empty, load_catalog())):
        assert "mig" not in keys
        assert unknown["mig"] == why


@pytest.mark.parametrize(("held", "hold"), [("nvidia-*", "true"), ("*nvidia*", "true"), ("docker*", "false")])
def test_a_driver_that_a_pattern_pins_is_pinned(held: str, hold: str) -> None:
    pinned = replace(h.READY, packages=replace(h.READY.packages, held=frozenset({held})))
    assert settings(pinned)[0]["hold"] == hold


@pytest.mark.parametrize(
    ("host", "key", "why"),
    [
        (h.containerd(cdi=False), "cdi", "the engines differ"),
        (h.containerd(cdi=None), "cdi", "containerd does not say"),
        (h.containerd(effective_default="runc"), "default", "the engines differ"),
        (h.host(runtimes=()), "runtime", "no running engine has the handler nvidia"),
        (h.driver(loaded_flavour=None), "flavour", "which kernel modules these are"),
    ],
)
def test_what_setup_has_no_one_word_for_is_left_out_with_the_reason(host: HostFacts, key: str, why: str) -> None:
    found, unknown = settings(host)
    assert key not in found
    assert why in unknown[key]


def test_the_package_that_pins_the_driver_is_none_of_a_lock() -> None:
    pinned = h.host(packages=h.packages(nvidia__driver__pinning__595="595"))
    found, _ = snapshot(pinned, load_catalog())
    assert "nvidia-open=" in found["packages"]
    assert "pinning" not in found["packages"]


def test_an_engine_without_the_handler_is_not_one_to_configure() -> None:
    found, _ = settings(h.containerd(handlers=("runc",), effective_default="runc"))
    assert (found["runtime"], found["default"]) == ("docker", "true")


def test_another_host_is_planned_like_it(locked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--recorded", BARE, "--lock", str(locked), "--json"]) == 0
    out, err = capsys.readouterr()
    plan = json.loads(out)["hosts"][0]["plan"]
    assert (plan["driver"]["version"], plan["driver"]["flavour"], plan["driver"]["source"]) == (h.V, "open", "cuda")
    wanted = plan["spec"]
    assert (wanted["driver"], wanted["toolkit"], wanted["runtimes"]) == (h.V, "1.20.0", ["docker", "containerd"])
    assert "kernel 6.18.44-lab" in err
    assert "vbios 27b8=96.00.A5.00.01" in err
    assert f"setup does not set them, gpunode check --against {locked} compares them" in " ".join(err.split())


def test_each_difference_has_the_locks_value_and_the_hosts(locked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--recorded", BARE, "--against", str(locked), "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)["hosts"][0]["checks"]
    found = {one["id"]: one for one in checks if one["outcome"] == "finding"}
    assert found["expect.kernel"]["summary"] == "kernel: 6.18.44-lab is expected, 6.1.0-41-amd64 was found"
    assert "nvidia-open: wanted 595.91.07-1, found none" in found["expect.packages"]["evidence"]
    assert all(one["remedy"] for one in found.values())
    assert {id.partition(".")[0] for id in found} <= {"expect", "pci"}


def test_flags_take_precedence_over_a_lock_and_a_lock_over_a_spec(
    locked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("driver: 570\nreboot: if-needed\n")
    argv = ["plan", "--recorded", BARE, "--spec", str(spec), "--lock", str(locked), "--json", "-q"]
    assert main(argv) == 0
    wanted = json.loads(capsys.readouterr().out)["hosts"][0]["plan"]["spec"]
    assert (wanted["driver"], wanted["reboot"]) == (h.V, "if-needed")
    assert main([*argv, "--driver", "580"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"][0]["plan"]["spec"]["driver"] == "580"


def test_a_lock_names_no_node(tmp_path: Path) -> None:
    for slug in ("ubuntu2404-lost-h100", "debian12-ready", "ubuntu2404-hgx-h100-ready"):
        path = tmp_path / slug
        assert main(["lock", "--recorded", str(HOSTS / slug), "--output", str(path)]) == 0
        text = path.read_text()
        for name in (slug, "GPU-", "MIG-", "0000:"):
            assert name not in text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "schema is not there"),
        ("setup: {driver: 580}\n", "schema is not there"),
        (HEAD, "there is nothing in it"),
        ("schema: gpunode.lock/2\nsetup: {driver: 580}\n", "'gpunode.lock/2' is not gpunode.lock/1"),
        (f"{HEAD}setup: {{mirror: /srv/evil}}\n", "setup.mirror is not a key of a lock"),
        (f"{HEAD}setup: {{trust_keys: {'A' * 40}}}\n", "setup.trust_keys is not a key of a lock"),
        (f"{HEAD}setup: {{proxy: 'http://evil:1'}}\n", "setup.proxy is not a key of a lock"),
        (f"{HEAD}setup: {{runtime_path: /tmp/evil}}\n", "setup.runtime_path is not a key of a lock"),
        (f"{HEAD}setup: {{allow_gpu_in_use: true}}\n", "setup.allow_gpu_in_use is not a key of a lock"),
        (f"{HEAD}setup: {{toolkit_config.runtimes: /tmp/evil}}\n", "toolkit_config.runtimes is not a key of a lock"),
        (f"{HEAD}site_checks: /tmp/evil\n", "site_checks is not a key of a lock"),
        (f"{HEAD}setup: {{driver: 580; rm -rf /}}\n", "is not a driver"),
        (f"{HEAD}setup: {{driver: None}}\n", "line 2: driver: 'None' is not what a node has"),
        (f"{HEAD}setup: {{toolkit: none}}\n", "line 2: toolkit: 'none' is not what a node has"),
        (f"{HEAD}setup: {{flavour: auto}}\n", "line 2: flavour: 'auto' is not what a node has"),
        (f"{HEAD}setup: {{driver: 580, driver: 570}}\n", "setup.driver is there twice"),
        (f"{HEAD}setup: {{driver: {{a: b}}}}\n", "one value is wanted here, not a mapping"),
        (f"{HEAD}setup: [driver]\n", "setup is not a key of a lock"),
        (f"{HEAD}expect: {{packages: ['nvidia-open=$(reboot)']}}\n", "is not of the right form"),
        (f"{HEAD}expect: {{packages: [{','.join(f'a{n}=1' for n in range(513))}]}}\n", "at most 512"),
        (f"{HEAD}expect: {{vbios: 'x'}}\n", "is not of the right form"),
        (f"{HEAD}setup: &a {{driver: 580}}\nexpect: *a\n", "an alias"),
        (f"{HEAD}setup: !!python/object:os.system {{driver: 580}}\nx: [\n", "line"),
        (f"{HEAD}setup: {'[' * 200}\n", "nested too deeply"),
        ("- driver\n", "is not a mapping"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_lock_is_refused_by_what_is_wrong_with_it(text: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_lock(text, "gpu.lock")
    assert what in f"{caught.value.problem}\n{caught.value.evidence}"


def test_what_is_wrong_with_a_lock_is_said_before_a_host_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpu.lock"
    for verb in ("plan", "setup"):
        argv = [verb, "--ssh", "nowhere.invalid", "--lock", str(path)]
        path.unlink(missing_ok=True)
        assert main(argv) == 2
        assert f"the lock {path} cannot be read" in said(capsys)
        path.write_text("#" * (LONGEST + 1))
        assert main(argv) == 2
        assert f"is over {LONGEST} bytes" in said(capsys)
        path.write_text(f"{HEAD}setup: {{mirror: /srv/evil}}\n")
        assert main(argv) == 2
        assert "setup.mirror is not a key of a lock" in said(capsys)


def test_against_tells_a_lock_from_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "golden"
    path.write_text("gpunode_expectation: 1\nexpect: {gpus: 8}\n")
    assert load_expectation(path).gpus == 8
    path.write_text(f"{HEAD}expect: {{gpus: 4}}\n")
    assert load_expectation(path).gpus == 4
    path.write_text("schema: gpunode.plan/3\n")
    with pytest.raises(UsageError, match="is not a lock"):
        load_expectation(path)


def test_a_lock_is_of_one_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lock", "--ssh", "a.invalid,b.invalid"]) == 2
    assert "a lock is of one host" in said(capsys)


def test_a_saved_plan_takes_no_other_lock(locked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, other = tmp_path / "plan.json", tmp_path / "other.lock"
    assert main(["plan", "--recorded", BARE, "--lock", str(locked), "--save", str(plan)]) == 0
    assert main(["setup", "--recorded", BARE, "--plan", str(plan), "--lock", str(locked)]) == 0
    other.write_text(re.sub("595.91.07", "595.99.99", locked.read_text()))
    capsys.readouterr()
    assert main(["setup", "--recorded", BARE, "--plan", str(plan), "--lock", str(other)]) == 2
    assert "cannot change a saved plan" in said(capsys)


def test_a_host_that_cannot_be_read_has_no_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpu.lock"
    code = main(["lock", "--ssh", "nowhere.invalid", "--connect-timeout", "1", "--output", str(path)])
    assert code == 3
    assert "nowhere.invalid" in said(capsys)
    assert not path.exists()
