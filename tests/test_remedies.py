"""A remedy's own commands are data, its action is deliberate, and both say the same."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.cli.app import main
from gpunode.cli.verbs.undo import _planner
from gpunode.errors import GpunodeError
from gpunode.facts.collect import assemble
from gpunode.facts.probe_script import probe_script
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.fleet.undo_one import Asked
from gpunode.model.report import Finding
from gpunode.model.spec import Spec
from gpunode.remedy import AGAIN, NO_REMEDY, Command, Remedy, RepairAction, gpunode, setup
from gpunode.transport.base import Completed

ROOT = Path(__file__).parent.parent
COMMAND = re.compile(r"\bgpunode (setup|plan|undo|check|detect|runtime)\b")
# What speaks of gpunode's commands and is no remedy: a note of a plan, which says what stays; help; a script.
NOT_REMEDIES = {
    "cli/commands.py": "examples of --help",
    "cli/verbs/*.py": "examples of --help",
    "planner/undo/plan.py": "Kept",
    "planner/undo/packages.py": "Kept",
    "planner/install/remove_driver.py": "Kept",
    "planner/driver/foreign.py": "hand_over, a line of the plan",
    "planner/engines/cdi.py": "Kept",
    "planner/engines/kubelet/steps.py": "a line of the plan",
    "planner/engines/steps.py": "by_hand",
    "planner/engines/restart.py": "by_hand",
    "planner/kernel/secureboot.py": "console",
    "engines/docker/engine.py": "Note",
    "kubernetes/readiness.py": "what Node Problem Detector says of a healthy node",
    "kubernetes/dra_values.py": "what does not fit a node, each a line of one refusal",
    "kubernetes/plugin_host.py": "what does not fit a node, each a line of one refusal",
    "engines/daemon/commands.py": "a script's own words",
}


def sentences(tree: ast.AST) -> Iterator[ast.Constant]:
    """Every text in the code; not the docstrings."""
    quoted = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quoted:
            yield node


def test_no_command_of_gpunode_stands_in_a_remedys_prose() -> None:
    wrong = []
    for path in sorted((ROOT / "gpunode").rglob("*.py")):
        name = path.relative_to(ROOT / "gpunode")
        if any(name.match(pattern) for pattern in NOT_REMEDIES):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        wrong += [f"gpunode/{name}:{n.lineno} {n.value!r}" for n in sentences(tree) if COMMAND.search(str(n.value))]
    assert not wrong


def given() -> Iterator[tuple[str, ast.expr]]:
    """Every value given as a remedy."""
    for path in sorted((ROOT / "gpunode").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "remedy":
                yield f"gpunode/{path.relative_to(ROOT / 'gpunode')}:{node.value.lineno}", node.value


def test_no_prose_with_a_command_is_given_as_a_remedy() -> None:
    wrong = [
        f"{place} {text.value!r}"
        for place, value in given()
        for text in sentences(value)
        if re.search(r"\bgpunode (setup|plan|undo|check|detect|runtime|catalog)\b", str(text.value))
    ]
    assert not wrong


EXAMPLES = ROOT / "examples" / "hosts"
HOSTS = sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file())
DOCS = {doc.id: doc for doc in all_checks()}
# What the text of each action says; a program that acts on the action does what a reader of the text would.
SAYS = {
    RepairAction.RESTART_SERVICE: r"systemctl|--only runtime",
    RepairAction.RELOAD_MODULE: r"modprobe",
    RepairAction.RESET_GPU: r"--gpu-reset",
    RepairAction.REBOOT: r"reboot",
    RepairAction.POWER_CYCLE: r"power the node off and on|power cycle|fallen off the bus",
    RepairAction.REPLACE: r"replace|reseat|inspect|instance type|cables",
    RepairAction.UPGRADE: r"--only (driver|toolkit)|install|upgrade|remove",
}
# A remedy that begins with setup is what that setup does; another first move (rm, modprobe) has its own action.
BY_SETUP = {
    "runtime": {RepairAction.CONFIGURE, RepairAction.RESTART_SERVICE},
    "toolkit": {RepairAction.UPGRADE, RepairAction.CONFIGURE},
    "driver": {RepairAction.UPGRADE, RepairAction.CONFIGURE, RepairAction.REBOOT},
    "kubernetes": {RepairAction.CONFIGURE},
}


def at_odds(remedy: Remedy) -> list[str]:
    """Where action, command and text of a remedy disagree."""
    found = []
    if not re.search(SAYS.get(remedy.action, ""), remedy.text):
        found.append(f"{remedy.action.value}: the text does not say so: {remedy.text}")
    first = remedy.parts[0]
    if not isinstance(first, Command) or first.verb != "setup":
        return found
    part = dict(zip(first.options, first.options[1:], strict=False))["--only"]
    if remedy.action not in BY_SETUP[part]:
        found.append(f"{remedy.action.value}: that is not what {first} does")
    if (remedy.action is RepairAction.REBOOT) != ("--reboot" in first.options):
        found.append(f"{remedy.action.value}: {first} {'does' if '--reboot' in first.options else 'does not'} reboot")
    return found


@pytest.mark.parametrize("id", DOCS)
def test_a_checks_usual_remedy_has_an_action_that_its_words_say(id: str) -> None:
    assert DOCS[id].remedy
    assert at_odds(DOCS[id].remedy) == []


@pytest.mark.parametrize("slug", HOSTS)
def test_every_finding_of_a_sample_host_has_an_action_that_its_words_say(slug: str) -> None:
    host = assemble(load_recording(EXAMPLES / slug), slug)
    results = (r for spec in (None, Spec()) for r in run_all(host, spec, load_catalog()).results.values())
    found = {r.id: r.outcome for r in results if isinstance(r.outcome, Finding)}
    assert [id for id, finding in found.items() if finding.remedy.action is RepairAction.NONE] == []
    assert {id: wrong for id, finding in found.items() if (wrong := at_odds(finding.remedy))} == {}


@pytest.mark.parametrize(
    "remedy",
    [
        Remedy(RepairAction.UPGRADE, setup("--only", "runtime")),
        Remedy(RepairAction.REBOOT, setup("--only", "driver"), " and reboot"),
        Remedy(RepairAction.POWER_CYCLE, "reseat the GPU"),
    ],
    ids=["another part's command", "a reboot that setup does not make", "other words"],
)
def test_what_disagrees_is_found(remedy: Remedy) -> None:
    assert at_odds(remedy)


def test_a_remedy_is_text_for_a_person_and_words_for_a_program() -> None:
    fit = Remedy(RepairAction.UPGRADE, gpunode("plan"), " shows it; ", setup("--only", "driver"), " does it")
    assert fit.text == "gpunode plan shows it; gpunode setup --only driver does it"
    assert fit.command == ("gpunode", "setup", "--only", "driver"), "looking mends nothing"
    assert Remedy(RepairAction.NONE, gpunode("plan"), " shows it").command == ("gpunode", "plan")
    assert Remedy(RepairAction.REBOOT, "reboot the host").command == ()
    assert not NO_REMEDY


def test_what_a_host_chose_is_quoted_in_a_command() -> None:
    assert str(setup("--runtime", "docker@$(id)")) == "gpunode setup --runtime 'docker@$(id)'"


def test_again_is_the_verb_that_runs_and_other_commands_stay() -> None:
    remedy = Remedy(RepairAction.WAIT, "run ", AGAIN, " again, or ", setup("--only", "runtime"))
    assert remedy.text == "run gpunode setup again, or gpunode setup --only runtime"
    assert remedy.during("undo").text == "run gpunode undo again, or gpunode setup --only runtime"
    assert remedy.during("undo").over_ssh("gpu07").text.startswith("run gpunode undo --ssh gpu07 again")


class Silent:
    """A host that is looked at, and whose other scripts end without a reply."""

    target = "gpu07"

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        return Completed(0, load_recording(EXAMPLES / HOSTS[0]) if script == probe_script() else b"", b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def test_what_fails_while_an_undo_is_planned_is_tried_again_with_undo() -> None:
    with pytest.raises(GpunodeError) as caught:
        _planner(Asked())(Host(Silent()))
    assert caught.value.remedy.text == "run gpunode undo again; it continues from what is there"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["setup", "--nope"], ["gpunode", "setup", "--help"]),
        (["runtime", "show", "--nope"], ["gpunode", "runtime", "show", "--help"]),
        (["nope"], ["gpunode", "--help"]),
    ],
    ids=["a verb", "a verb of two words", "no verb"],
)
def test_the_help_that_a_mistyped_line_names_is_a_command_too(
    typed: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*typed, "--json"])
    remedy = json.loads(capsys.readouterr().out)["remedy"]
    assert (remedy["command"], remedy["text"]) == (words, f"{' '.join(words)} lists what there is")


def test_what_a_remedy_says_itself_is_not_typed_twice() -> None:
    remedy = Remedy(RepairAction.UPGRADE, setup("--driver", "580", "--kubernetes-mode", "device-plugin"))
    typed = ("--spec", "node.yaml", "--kubernetes-mode", "dra", "--cdi", "--driver", "565")
    assert remedy.wanting(typed).command == (
        *("gpunode", "setup", "--spec", "node.yaml", "--cdi"),
        *("--driver", "580", "--kubernetes-mode", "device-plugin"),
    )
