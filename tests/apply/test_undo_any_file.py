"""Any legal configuration: rewritten through the real scripts and undone again, every byte is as it was before."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpunode.apply.journal.past import read_past
from gpunode.catalog.load import load_catalog
from gpunode.model.action import Action, PutFile
from gpunode.model.report import StepStatus
from gpunode.planner.undo.plan import undo_plan
from tests.apply.machine import Machine
from tests.apply.test_undo import HOST, carry_out, setup
from tests.editing.test_toml_text_property import documents
from tests.engines.docker_cases import DEFAULT, rewritten
from tests.engines.test_containerd import rewrite
from tests.engines.test_docker_any_file import ANY_FILE

CATALOG = load_catalog()
FEW = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


def there_and_back(step: str, texts: dict[str, tuple[str, str]]) -> None:
    """name -> (text before, text as gpunode writes it)."""
    with tempfile.TemporaryDirectory() as directory:
        machine, root = Machine(Path(directory)), Path(directory, "etc")
        root.mkdir()
        puts: list[Action] = []
        old = {root / name: before.encode("utf-8", "surrogateescape") for name, (before, _) in texts.items()}
        for path, data in old.items():
            path.write_bytes(data)
            puts.append(PutFile(str(path), texts[path.name][1], any_before=True))
        assert setup(machine, "r1", *puts, step=step) is StepStatus.DONE
        new = {path: path.read_bytes() for path in old}
        assert new == {root / name: after.encode("utf-8", "surrogateescape") for name, (_, after) in texts.items()}
        plan = undo_plan(HOST, read_past(machine), CATALOG)
        if new != old:
            assert carry_out(machine, "r2", plan) is StepStatus.DONE
        assert {path: path.read_bytes() for path in old} == old


@FEW
@given(st.lists(ANY_FILE, min_size=4, max_size=8))
def test_every_daemon_json_comes_back(texts: list[str]) -> None:
    clean = [text for text in texts if not any("\ud800" <= c < "\udc80" for c in text)]
    after = {f"{n}.json": (text, rewritten(text, "26.1.5", DEFAULT).main.after) for n, text in enumerate(clean)}
    there_and_back("docker.default", after)


@FEW
@given(st.lists(documents(), min_size=2, max_size=4))
def test_every_containerd_configuration_comes_back(found: list[tuple[str, str]]) -> None:
    texts = {f"{n}.toml": (text, rewrite(text, version).edits[-1].after) for n, (version, text) in enumerate(found)}
    there_and_back("containerd.default", texts)
