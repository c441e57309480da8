"""An engine that gpunode does not know, in this one file: registered, it is detected, set up, checked and undone.

Its daemon is a file that it has loaded: `boatd` reads boat.conf when it is told to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.journal.past import read_past
from gpunode.apply.journal.snapshot import before_values
from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.cli.app import main
from gpunode.editing.unread import refuse_unread
from gpunode.engines.base import Edit, Engine, Removal, Rewrite
from gpunode.engines.provenance import BUILT_IN, DEFAULT, Origin, in_file
from gpunode.engines.registry import forget, register
from gpunode.errors import UsageError
from gpunode.facts.collect import assemble, load_recording
from gpunode.facts.processes import Process
from gpunode.facts.readers import Reader, Units
from gpunode.facts.release import key_values
from gpunode.facts.wire import Section, Sections, decode, encode, file_facts
from gpunode.model.action import Action, Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import Plan
from gpunode.model.report import CheckOutcome, Finding, StepStatus
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.plan import make_plan
from gpunode.planner.undo.plan import undo_plan
from gpunode.specfile import put
from tests.apply.machine import Machine

RECORDING = Path(__file__).parents[2] / "examples/hosts/debian12-ready"
OURS = "# a comment of its admin\nhandler runc /usr/bin/runc\ndefault runc\n"


def observed(sections: Sections, units: Units, hosts: tuple[Process, ...]) -> tuple[RuntimeFacts, ...]:
    """The probe's section `boat`: config=PATH, default=NAME, handlers=NAME NAME."""
    value = key_values(sections.text("boat"))
    if not value:
        return ()
    return (
        RuntimeFacts(
            "boat", "1.0", value["config"], "boat.service", value["loaded"], active=True,
            effective_default=value["default"], effective_source="boat status",
            handlers=tuple(value["handlers"].split()),
        ),
    )  # fmt: skip


def shell(script: str, *words: str) -> Run:
    return Run(("sh", "-c", script, "sh", *words), timeout_s=10)


class Boat(Engine):
    name = "boat"
    title = "boat loads its file again"
    default_key = "default"
    config = "/etc/boat.conf"
    reader = Reader(("boat",), observed)

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        file = host.file(engine.config_path)
        refuse_unread(file.path, file.unread)
        after, added = file.text or "", []
        if f"handler {want.handler} " not in after:
            after, added = f"{after}handler {want.handler} {want.path}\n", [f"+ handler {want.handler}"]
        if want.default and f"default {want.handler}\n" not in after:
            after = re.sub(r"^default .*$", f"default {want.handler}", after, flags=re.MULTILINE)
            added.append(f"default → {want.handler}")
        return Rewrite((Edit(file.path, file.text, after),), tuple(added))

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        return None

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        return shell('grep -q "^default " "$1"', "{candidate}")

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        return (shell('cp "$1" "$2"', engine.config_path, engine.socket),)

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        return shell('grep -qx "default $1" "$2"', want.handler, engine.socket)

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        default = RuntimeSpec(handler=engine.effective_default or "runc")
        return (*self.apply(engine), self.verify(engine, default))

    def without(self, path: str, text: str, removal: Removal) -> str:
        lines = [line for line in text.splitlines(keepends=True) if not line.startswith(f"handler {removal.handler} ")]
        return "".join(lines).replace(f"default {removal.handler}\n", f"default {removal.default}\n")

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        file = host.file(engine.config_path)
        for number, line in enumerate((file.text or "").splitlines(), 1):
            if line.startswith("default "):
                return (in_file(DEFAULT, line.split()[1], file, number),)
        return (Origin(DEFAULT, "runc", BUILT_IN),)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(Boat())
    yield
    forget("boat")


@pytest.fixture
def boat(tmp_path: Path) -> Path:
    """Its file and what its daemon has loaded; the recorded host has the right driver and toolkit."""
    for name in ("boat.conf", "loaded"):
        (tmp_path / name).write_text(OURS)
    return tmp_path


def stream(boat: Path) -> bytes:
    """The recorded host's answer with the section that a probe of this engine would add, and its file."""
    sections = decode(load_recording(RECORDING))
    loaded, config = (boat / "loaded").read_text(), boat / "boat.conf"
    default = re.findall(r"^default (\S+)", loaded, re.MULTILINE)[0]
    handlers = " ".join(re.findall(r"^handler (\S+)", loaded, re.MULTILINE))
    said = f"config={config}\nloaded={boat / 'loaded'}\ndefault={default}\nhandlers={handlers}\n"
    commands = {**sections.commands, "boat": Section(said)}
    files = {**sections.files, str(config): file_facts(str(config), config.read_text())}
    return encode(replace(sections, commands=commands, files=files))


def look(boat: Path) -> HostFacts:
    return assemble(stream(boat), "testhost")


def carry_out(machine: Machine, run_id: str, host: HostFacts, plan: Plan) -> None:
    before = before_values(host, plan)
    results = execute(
        plan, machine, run_id=run_id, on_event=lambda _: None, stop=lambda: False, before=before, pause=lambda _: None
    )
    assert [result.status for result in results] == [StepStatus.DONE] * len(plan.steps), results


def default_check(host: HostFacts, spec: Spec) -> CheckOutcome:
    return run_all(host, spec, load_catalog()).results["rt.effective-default"].outcome


@pytest.mark.parametrize("handler", ["nvidia", "gpu"])
def test_it_is_detected_set_up_checked_and_undone(boat: Path, handler: str) -> None:
    machine, catalog = Machine(boat), load_catalog()
    spec = put(put(put(Spec(), "runtime", "boat"), "only", "runtime"), "handler", handler)

    host = look(boat)
    assert [(e.name, e.effective_default) for e in host.runtimes if e.name == "boat"] == [("boat", "runc")]
    before = default_check(host, spec)
    assert isinstance(before, Finding)
    assert f"{boat}/boat.conf:3 default = runc" in before.evidence

    plan = make_plan(host, spec, catalog)
    assert [step.id for step in plan.steps] == ["boat.default"]
    assert f"+ handler {handler}, default → {handler}; boat loads its file again" in plan.steps[0].title
    carry_out(machine, "r1", host, plan)
    assert f"default {handler}\n" in (boat / "loaded").read_text()

    after = look(boat)
    assert default_check(after, spec) is None
    assert not make_plan(after, spec, catalog).steps

    (boat / "boat.conf").write_text((boat / "boat.conf").read_text() + "# added since\n")
    changed = look(boat)
    carry_out(machine, "r2", changed, undo_plan(changed, read_past(machine), catalog))
    assert (boat / "boat.conf").read_text() == f"{OURS}# added since\n"
    assert (boat / "loaded").read_text() == f"{OURS}# added since\n"
    assert isinstance(default_check(look(boat), spec), Finding)


def test_a_step_that_its_daemon_does_not_take_is_rolled_back(boat: Path) -> None:
    spec = put(put(Spec(), "runtime", "boat"), "only", "runtime")
    host = look(boat)
    plan = make_plan(host, spec, load_catalog())
    (boat / "loaded").unlink()
    (boat / "loaded").mkdir()  # the daemon is gone: nothing loads the file
    results = execute(
        plan, Machine(boat), run_id="r1", on_event=lambda _: None, stop=lambda: False, pause=lambda _: None
    )
    assert results[0].status is not StepStatus.DONE
    assert (boat / "boat.conf").read_text() == OURS


def test_its_file_is_configured_offline_and_its_name_is_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/boat.conf").write_text(OURS)
    assert main(["runtime", "configure", "boat", "--root", str(tmp_path)]) == 0
    assert "default nvidia\n" in (tmp_path / "etc/boat.conf").read_text()
    assert main(["runtime", "configure", "ship"]) == 2
    assert "podman, boat" in capsys.readouterr().err
    with pytest.raises(UsageError) as refused:
        put(Spec(), "runtime", "ship")
    assert "podman, boat" in refused.value.evidence


def test_it_is_listed_by_detect_from_a_recording(
    boat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "recording"
    recording.mkdir()
    (recording / "facts.txt").write_bytes(stream(boat))
    assert main(["detect", "--recorded", str(recording)]) == 0
    assert "boat" in capsys.readouterr().out
