"""--inventory and what chooses from it: who is reached and as whom, who is left alone, and what is wanted of whom."""

from __future__ import annotations

import getpass
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import pytest

from gpunode.apply.commands.detached import nothing_runs
from gpunode.cli.app import main
from gpunode.cli.commands import _tree
from gpunode.cli.options.groups import LiveOptions
from gpunode.cli.start.first_look import at_this_machine
from gpunode.errors import ExitCode
from gpunode.facts.probe_script import probe_script
from gpunode.facts.recordings import load_recording
from gpunode.fleet.runs.directory import runs_home
from gpunode.transport.base import Completed
from gpunode.transport.ssh_config import SshOptions, SshTarget
from tests.transport.sshd import SSHD, Sshd

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
HERE = str(EXAMPLES / "debian12-ready")
NODES = {"b200": "ubuntu2604-b200", "l4": "debian12-l4", "ready": "debian12-ready", "h100": "ubuntu2404-hgx-h100-ready"}
PROBES = (probe_script(), probe_script(nothing_runs()))
FLEET = "hosts: b200, l4, ready, h100\ngroups:\n  small: {hosts: 'l4,ready'}\n"
Captured = pytest.CaptureFixture[str]


# ---- over a real sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if SSHD is None:
        pytest.skip("sshd is not installed (openssh-server)")
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


@pytest.fixture
def bastion(server: Sshd, tmp_path: Path) -> Iterator[Sshd]:
    """Another one, for the same key."""
    (tmp_path / "bastion").mkdir()
    bastion = Sshd(tmp_path / "bastion", extra=f"AuthorizedKeysFile {server.identity}.pub").start()
    yield bastion
    bastion.stop()


@pytest.fixture
def home(server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whose ~/.ssh knows the server's key, and has none of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {server.host_key}\n")
    return tmp_path


def targets(words: list[str], capsys: Captured) -> dict[str, int]:
    """Each host that detect reports, with its code."""
    main(["detect", "--json", *words])
    out, err = capsys.readouterr()
    assert "internal error" not in err
    return {host["target"]: host["code"] for host in json.loads(out)["hosts"]}


def test_hosts_of_our_own_inventory_are_reached_as_it_says(server: Sshd, home: Path, capsys: Captured) -> None:
    inventory = home / "fleet.yaml"
    inventory.write_text(
        f"user: {getpass.getuser()}\nport: {server.port}\nidentity: {server.identity}\n"
        "hosts:\n  a: {address: 127.0.0.1}\n  b: {address: 127.0.0.1}\n  c: {address: 127.0.0.1, port: 1}\n"
        "groups:\n  ab: {hosts: 'a,b'}\n"
    )
    words = ["--inventory", str(inventory)]
    assert targets(words, capsys) == {"a": 0, "b": 0, "c": 3}
    assert targets([*words, "--limit", "ab", "--exclude", "a"], capsys) == {"b": 0}
    assert targets([*words, "--limit", "c", "--port", str(server.port)], capsys) == {"c": 0}, (
        "what is typed outweighs it"
    )
    assert targets([*words, "--limit", "a", "--user", "nosuchuser"], capsys) == {"a": 3}


def test_hosts_of_ansible_are_reached_through_its_jump_host(
    server: Sshd, bastion: Sshd, home: Path, capsys: Captured
) -> None:
    with (home / ".ssh" / "known_hosts").open("a") as file:
        file.write(f"[127.0.0.1]:{bastion.port} {bastion.host_key}\n")
    inventory, user = home / "hosts.ini", getpass.getuser()
    through = f"-o ProxyCommand='ssh -W %h:%p -q {user}@127.0.0.1 -p {bastion.port}' -o StrictHostKeyChecking=no"
    inventory.write_text(
        "[gpu]\na ansible_host=127.0.0.1\n[gpu:vars]\n"
        f"ansible_port={server.port}\nansible_user={user}\nansible_ssh_private_key_file={server.identity}\n"
        f"ansible_ssh_common_args={through}\n"
    )
    assert main(["check", "--inventory", str(inventory), "--only", "fleet.hostkey", "-v"]) == 0
    out, err = capsys.readouterr()
    assert "a: 1 check passes" in out
    assert "StrictHostKeyChecking=no of ansible_ssh_common_args is not read" in " ".join(err.split())
    assert "Accepted publickey" in (bastion.directory / "log").read_text()


def test_a_key_that_is_not_known_is_refused_whatever_ansible_says(server: Sshd, home: Path, capsys: Captured) -> None:
    (home / ".ssh" / "known_hosts").write_text("")
    inventory = home / "hosts.ini"
    args = "ansible_ssh_common_args='-o StrictHostKeyChecking=no' ansible_host_key_checking=false"
    inventory.write_text(f"a ansible_host=127.0.0.1 ansible_port={server.port} {args}\n")
    assert targets(["--inventory", str(inventory)], capsys) == {"a": 3}


def test_a_list_on_standard_input_is_words_of_ssh(
    server: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    there = f"{getpass.getuser()}@127.0.0.1:{server.port}"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"# mine\n{there}\n".encode())))
    assert targets(["--inventory", "-", "--identity", str(server.identity)], capsys) == {there: 0}


# ---- over recordings: what a host answers, and everything before that


@dataclass
class Answering:
    """A host of NODES on which nothing is at work: it answers the probe, and nothing to any other script."""

    to: SshTarget
    options: SshOptions

    @property
    def target(self) -> str:
        return str(self.to)

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        stream = load_recording(EXAMPLES / NODES[self.to.host]) if script in PROBES else b""
        return Completed(0, stream, b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Run:
    """run(words, inventory) -> exit code, stdout, stderr as one line."""

    def run(words: list[str], inventory: str = FLEET) -> tuple[int, str, str]:
        monkeypatch.setattr("gpunode.transport.ssh.Ssh", Answering)
        path = tmp_path / "fleet.yaml"
        path.write_text(inventory)
        code = main([*words, "--inventory", str(path)])
        out, err = capsys.readouterr()
        assert "internal error" not in out + err
        assert "Traceback" not in out + err
        return code, out, " ".join(err.split()).replace(str(path), "FLEET")

    return run


def test_who_does_not_match_is_left_out_and_not_failed(run: Run) -> None:
    code, out, err = run(["detect", "--where", "gpu.arch=blackwell"])
    assert code == 0
    assert out.startswith("b200   ")
    assert "H100" not in out
    assert "left out by --where: l4, ready (gpu.arch is ada); h100 (gpu.arch is hopper)" in err


def test_json_has_a_row_for_who_is_left_out(run: Run) -> None:
    for words in (["--json"], ["--format", "jsonl"]):
        code, out, _ = run(["detect", "--where", "gpu.count=8", *words])
        rows: list[dict[str, Any]] = (
            json.loads(out)["hosts"] if words == ["--json"] else [json.loads(line) for line in out.splitlines()]
        )
        assert code == 0
        found = {row["target"]: (row["code"], row.get("left_out_why"), "facts" in row) for row in rows}
        assert found["h100"] == (0, None, True)
        assert found["l4"] == (0, "gpu.count is 1", False)


@pytest.mark.parametrize("form", ["text", "junit", "prometheus", "nvsentinel"])
def test_no_other_format_of_a_check_has_them(run: Run, form: str) -> None:
    code, out, _ = run(["check", "--where", "driver.branch=595", "--format", form, "--limit", "ready,l4"])
    assert code == 0
    assert "l4" not in out.replace("debian12-l4", "")
    assert "without a report" not in out


def test_where_nobody_matches_that_is_an_error_and_not_all_well(run: Run) -> None:
    for verb in ("detect", "check", "plan", "setup"):
        yes = ["--yes"] if verb == "setup" else []
        code, out, err = run([verb, *yes, "--where", "gpu.arch=volta"])
        assert (code, out) == (2, "")
        assert (
            "--where leaves none of 4 hosts evidence b200 (gpu.arch is blackwell); l4, ready (gpu.arch is ada); h100"
            in err
        )


def test_setup_plans_nothing_for_who_is_left_out(run: Run) -> None:
    code, out, err = run(["plan", "--where", "gpu.model=B200", "--json"])
    assert code == 0
    assert {row["target"]: "plan" in row for row in json.loads(out)["hosts"]} == {
        "b200": True, "l4": False, "ready": False, "h100": False
    }  # fmt: skip
    assert "left out by --where" in err


@pytest.mark.parametrize(
    "verb",
    [
        ["runtime", "show"], ["k8s", "labels"], ["k8s", "verify"], ["k8s", "preflight", "--to", "1.38"], ["plan"],
        ["plan", "--explain"], ["check"], ["check", "--strict"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_verb_with_hosts_takes_them_from_an_inventory_and_leaves_out(run: Run, verb: list[str]) -> None:
    words = [*verb, "--where", "gpu.arch=hopper", "--limit", "h100,l4"]
    _, out, err = run(words)
    assert "left out by --where: l4 (gpu.arch is ada)" in err
    assert "l4   " not in out
    if "--explain" not in verb:
        _, out, _ = run([*words, "--json"])
        rows = {row["target"]: row for row in json.loads(out)["hosts"]}
        assert rows["l4"] == {"target": "l4", "code": 0, "left_out_why": "gpu.arch is ada"}


def test_every_verb_with_ssh_has_all_of_these_options() -> None:
    flags = {"--ssh", "--inventory", "--limit", "--exclude", "--where", "--shard"}

    def verbs(command: click.Command, path: str) -> Iterator[tuple[str, set[str]]]:
        yield path, {flag for one in command.params for flag in one.opts}
        for name, inner in getattr(command, "commands", {}).items():
            yield from verbs(inner, f"{path} {name}")

    found = {path: has & flags for path, has in verbs(_tree(), "gpunode") if "--ssh" in has}
    assert len(found) > 8
    assert [path for path, has in found.items() if has != flags] == []


# ---- per-group specs


SPECS = """\
hosts: b200, l4, ready
groups:
  big: {hosts: b200, spec: {driver: 595, expect: {gpus: 8}}}
  small: {hosts: 'l4,ready', spec: {driver: 580, toolkit: none, expect: {gpus: 9}}}
"""


def drivers(out: str) -> dict[str, tuple[str, str]]:
    """What each host's plan is for: driver and toolkit."""
    rows = json.loads(out)["hosts"]
    return {row["target"]: (row["plan"]["spec"]["driver"], row["plan"]["spec"]["toolkit"]) for row in rows}


def test_each_host_is_planned_by_what_its_group_wants(run: Run, tmp_path: Path) -> None:
    _, out, _ = run(["plan", "--json"], SPECS)
    assert drivers(out) == {"b200": ("595", "auto"), "l4": ("580", "none"), "ready": ("580", "none")}
    (tmp_path / "spec.yaml").write_text("toolkit: 1.20.0\n")
    _, out, _ = run(["plan", "--json", "--spec", str(tmp_path / "spec.yaml")], SPECS)
    assert drivers(out)["l4"] == ("580", "1.20.0"), "--spec outweighs the inventory"
    _, out, _ = run(["plan", "--json", "--spec", str(tmp_path / "spec.yaml"), "--driver", "610"], SPECS)
    assert {driver for driver, _ in drivers(out).values()} == {"610"}, "and a flag outweighs both"


def test_setup_asks_about_what_each_group_wants_and_about_nobody_else(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    text = "hosts: l4, h100\ngroups:\n  a: {hosts: l4, spec: {driver: 580}}\n  b: {hosts: h100, spec: {driver: 610}}\n"
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, out, err = run(["setup", "--only", "driver"], text)
    assert (code, out) == (1, "")
    assert "Driver 580." in err
    assert "Driver 610." in err
    assert "steps on 2 hosts? [y/N] gpunode: nothing was changed" in err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    _, _, err = run(["setup", "--only", "driver", "--where", "gpu.arch=ada"], text)
    assert "Driver 610." not in err
    assert "left out by --where: h100 (gpu.arch is hopper)" in err
    assert "steps? [y/N]" in err


@pytest.mark.parametrize("words", [["--json"], ["--format", "jsonl"]])
def test_a_no_to_the_question_is_a_result_for_programs(
    words: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, out, err = run(["setup", "--only", "driver", *words], "hosts: l4, ready\n")
    assert (code, "nothing was changed" in err) == (1, True)
    rows = json.loads(out)["hosts"] if words == ["--json"] else [json.loads(line) for line in out.splitlines()]
    declined, matching = sorted(rows, key=lambda row: row["target"])
    assert (declined["target"], declined["code"], declined["untouched"]) == ("l4", 1, "not-begun")
    assert declined["problem"] == "not begun: the question was answered with no"
    assert declined["plan"]["steps"]
    assert "run" not in declined
    assert (matching["target"], matching["code"], "problem" in matching) == ("ready", 0, False)


def test_each_host_is_checked_by_what_its_group_wants(run: Run) -> None:
    code, out, _ = run(["check", "--only", "pci.expected-count", "--json"], SPECS)
    assert code == 1
    found = {
        row["target"]: [one["id"] for one in row["checks"] if one["outcome"] == "finding"]
        for row in json.loads(out)["hosts"]
    }
    assert found == {"b200": [], "l4": ["pci.expected-count"], "ready": ["pci.expected-count"]}
    code, _, _ = run(["check", "--only", "pci.expected-count", "--expect-gpus", "1", "--limit", "small"], SPECS)
    assert code == 0


def test_what_does_not_go_together_names_a_host_and_none_is_asked(run: Run, tmp_path: Path) -> None:
    text = "hosts: l4\nspec: {driver: none}\n"
    (tmp_path / "spec.yaml").write_text("flavour: open\n")
    code, _, err = run(["plan", "--spec", str(tmp_path / "spec.yaml")], text)
    assert code == 2
    assert "gpunode: l4: --driver none leaves nothing for --flavour" in err
    code, _, err = run(["plan", "--driver", "none"], "hosts: l4\nspec: {flavour: open}\n")
    assert "leaves nothing" not in err, "what is typed outweighs what lies below it"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("spec: {driver: 580, flavour: open, mig: all=off}\nhosts:\n  l4:\n    spec: {driver: none}\n", False),
        ("spec: {flavour: open}\ngroups:\n  a:\n    hosts: l4\n    spec: {driver: none}\n", False),
        ("spec: {driver: none}\nhosts:\n  l4:\n    spec: {driver: 580, flavour: open}\n", False),
        ("spec: {driver: none}\nhosts:\n  l4:\n    spec: {flavour: open}\n", True),
        ("hosts:\n  l4:\n    spec: {driver: none, flavour: open}\n", True),
        (
            "groups:\n  a:\n    hosts: l4\n    spec: {flavour: open}\n  b:\n    hosts: l4\n    spec: {driver: none}\n",
            True,
        ),
    ],
    ids=[
        "a host's",
        "a group's",
        "a driver again",
        "a flavour nearer than none",
        "one hand",
        "groups beside each other",
    ],
)
def test_a_nearer_none_leaves_idle_what_lies_farther(run: Run, text: str, refused: bool) -> None:
    code, _, err = run(["plan"], text)
    assert (code, "--driver none leaves nothing for --flavour" in err) == ((2, True) if refused else (code, False))
    assert refused or code != 2, err


def test_expectations_of_a_group_and_against_exclude_each_other(run: Run, tmp_path: Path) -> None:
    assert main(["check", "--recorded", HERE, "--snapshot", str(tmp_path / "snap.yaml"), "-q"]) == 0
    code, _, err = run(["check", "--against", str(tmp_path / "snap.yaml")], SPECS)
    assert code == 2
    assert "gpunode: b200: expect of the spec and --against exclude each other" in err


# ---- what a person is told to type


def test_remedies_name_the_inventory_that_knows_the_hosts(run: Run) -> None:
    _, out, _ = run(["check", "--limit", "l4"], "hosts: {l4: {user: root}}\n")
    assert " --inventory " in " ".join(out.split())
    assert "--limit l4" in " ".join(out.split())
    assert "--ssh" not in out


def test_remedies_for_an_inventory_on_standard_input_ask_for_its_file(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("gpunode.transport.ssh.Ssh", Answering)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hosts: {l4: {user: root}, b200: {}}\n")))
    main(["check", "--inventory", "-"])
    out = " ".join(capsys.readouterr().out.split())
    assert "gpunode setup --inventory FILE --limit" in out
    assert "--inventory -" not in out


def test_remedies_for_a_list_go_with_ssh(run: Run) -> None:
    _, out, _ = run(["check"], "l4\n")
    assert "--ssh l4" in " ".join(out.split())
    assert "--inventory" not in out


def test_remedies_have_how_the_hosts_are_reached_as_it_was_typed(run: Run) -> None:
    _, out, _ = run(["check", "--user", "ann", "--port", "2222", "--jump", "bob@b1:22,bob@b2:22"], "l4\n")
    assert "--ssh l4 --user ann --port 2222 --jump bob@b1:22,bob@b2:22" in " ".join(out.split())
    _, out, _ = run(["check"], "l4\n")
    assert "--user" not in out, "of this command line alone"


# ---- shards


def test_shards_of_a_run_are_all_of_its_hosts(run: Run) -> None:
    found: list[str] = []
    for number in (1, 2, 3):
        code, out, err = run(["detect", "--json", "--shard", f"{number}/3"])
        assert code == 0
        part = [row["target"] for row in json.loads(out)["hosts"]]
        assert bool(part) != ("none is in shard" in err)
        found += part
    assert sorted(found) == sorted(NODES)


@pytest.mark.parametrize(
    "words",
    [["detect"], ["check"], ["plan"], ["setup", "--yes"], ["undo", "--yes"], ["runtime", "show"], ["k8s", "verify"]],
)
def test_a_shard_of_nobody_ends_well_and_says_so(run: Run, words: list[str]) -> None:
    shard = next(n for n in range(1, 100) if not any(has(name, n) for name in NODES))
    code, out, err = run([*words, "--shard", f"{shard}/99"])
    assert code == 0
    assert f"of 4 hosts, none is in shard {shard}/99: nothing to do" in err
    assert "host" not in out
    assert not runs_home().exists(), "a run of nobody is none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--save", "x"], "--save takes one host"),
        (["detect", "--record", "x"], "--record takes one host"),
        (["check", "--snapshot", "x"], "--snapshot takes one host"),
        (["k8s", "pod"], "k8s pod takes one host"),
        (["k8s", "dra"], "there is no host in this shard"),
        (["k8s", "device-plugin"], "there is no host in this shard"),
    ],
)
def test_what_needs_a_host_is_refused_in_a_shard_of_nobody(
    run: Run, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shard = next(n for n in range(1, 100) if not any(has(name, n) for name in NODES))
    code, _, err = run([*words, "--shard", f"{shard}/99"])
    assert code == 2
    assert said in err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("words", [["k8s", "dra"], ["k8s", "device-plugin"], ["k8s", "pod"]])
def test_what_is_held_against_nodes_asks_only_those_that_match(run: Run, words: list[str]) -> None:
    code, _, err = run([*words, "--limit", "h100", "--where", "gpu.arch=ada"])
    assert code == 2
    assert "--where leaves no host evidence h100 (gpu.arch is hopper)" in err


def has(name: str, number: int) -> bool:
    from gpunode.fleet.inventory.choice import Shard

    return Shard(number, 99).has(name)


# ---- refusals


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ssh", "h1", "--inventory", "x"], "--ssh and --inventory exclude each other"),
        (["--inventory", "x", "--recorded", HERE], "--inventory and --recorded exclude each other"),
        (["--limit", "h1"], "--limit is for hosts over SSH remedy name them with --ssh or --inventory"),
        (["--exclude", "h1", "--recorded", HERE], "--exclude is for hosts over SSH"),
        (["--where", "gpu.arch=ada"], "--where is for hosts over SSH"),
        (["--shard", "1/2"], "--shard is for hosts over SSH"),
        (["--ssh", "h1", "--shard", "0/2"], "--shard '0/2' is not a part of a whole"),
        (["--ssh", "h1", "--where", "gpu.arhc=ada"], "did you mean gpu.arch?"),
        (["--ssh", "gpu01", "--limit", "gpu02"], "--limit: gpu02 is not there (did you mean gpu01?)"),
        (["--inventory", "/nosuch"], "--inventory /nosuch cannot be read"),
        (["--inventory", ""], "is a directory"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_refusals(words: list[str], said: str, capsys: Captured) -> None:
    assert main(["check", *words]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())


def test_standard_input_that_is_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["check", "--inventory", "-"]) == ExitCode.USAGE
    assert "reads standard input, which is a terminal" in " ".join(capsys.readouterr().err.split())


def test_a_node_that_speaks_for_itself_takes_no_inventory(capsys: Captured) -> None:
    assert main(["check", "--npd", "--inventory", "x"]) == ExitCode.USAGE
    assert "--npd is of the node that it runs on" in " ".join(capsys.readouterr().err.split())
    assert main(["check", "--unit", "service", "--inventory", "-"]) == ExitCode.USAGE
    assert main(["check", "--unit", "service", "--ssh", "h1,@hosts.txt"]) == ExitCode.USAGE
    capsys.readouterr()
    assert main(["check", "--unit", "service", "--inventory", "fleet.yaml", "--limit", "a"]) == 0
    assert f'"--inventory" "{Path("fleet.yaml").absolute()}" "--limit" "a"' in capsys.readouterr().out


def test_this_machine_is_not_looked_at_for_an_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert not at_this_machine(["check", "--inventory", "x"])
    assert not at_this_machine(["check", "--inventory=x"])
    assert at_this_machine(["check"])


def test_no_option_of_hosts_is_forgotten_where_it_would_be_ignored(capsys: Captured) -> None:
    """A new flag of LiveOptions is read for this machine, or refused."""
    read = {"ssh", "inventory", "ask_become_pass", "become_pass_file"}
    for field in fields(LiveOptions):
        if field.name not in read:
            value = [] if field.default is False else ["1"]
            main(["check", f"--{field.name.replace('_', '-')}", *value, "--recorded", HERE])
            assert "is for hosts" in capsys.readouterr().err.replace("is not a choice", "is for hosts")
