"""CRI-O's drop-in: text and structure. CRI-O itself is in no suite of Debian's, so it was not run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpunode.engines.base import Removal
from gpunode.engines.crio import Crio, effective
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.spec import Spec
from gpunode.planner.engines.steps import runtime_steps
from gpunode.remedy import Remedy
from tests.engines import rewritten, trees
from tests.engines.hosts import engine_facts, file_facts
from tests.engines.rewritten import WANTED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAIRS = trees.pairs(Path(__file__).parent / "crio")
DIRECTORY = "/etc/crio/crio.conf.d"
OURS = f"{DIRECTORY}/99-nvidia.toml"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_tree_before_and_after(pair: trees.Pair) -> None:
    rewritten.check(pair, "crio")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_in_force_is_what_is_wanted_and_all_else_is_as_before(pair: trees.Pair) -> None:
    """Read as CRI-O reads: crio.conf, then the directory in the order of the names."""
    before, after = effective_in(pair.before), effective_in(pair.after)
    handler = "gpu" if pair.said.get("want") == "gpu" else "nvidia"
    stays = before[1].get(handler, {}).get("runtime_path") if pair.said.get("want") != "opt" else WANTED["opt"].path
    assert after[1][handler]["runtime_path"] == (stays or "/usr/bin/nvidia-container-runtime")
    assert after[0] == (before[0] if pair.said.get("want") == "no" else handler)
    assert {n: t for n, t in after[1].items() if n != handler} == {n: t for n, t in before[1].items() if n != handler}


def effective_in(tree: dict[str, str]) -> tuple[str | None, dict[str, dict[str, object]]]:
    files = sorted(tree, key=lambda path: (path.startswith(DIRECTORY), path.split("/")))
    default: str | None = None
    runtimes: dict[str, dict[str, object]] = {}
    for path in files:
        section = tomllib.loads(tree[path]).get("crio", {}).get("runtime", {})
        default = section.get("default_runtime", default)
        runtimes |= section.get("runtimes", {})
    assert (default, runtimes) == effective(tuple(file_facts(path, tree[path]) for path in files))
    return default, runtimes


@pytest.mark.parametrize("flags", [("--default-runtime=crun",), ("--default-runtime", "crun", "--log-level=info")])
def test_a_flag_in_the_unit_takes_precedence(flags: tuple[str, ...]) -> None:
    engine = engine_facts("crio", "1.33.5", flags=flags)
    with pytest.raises(UnsupportedHost) as refused:
        rewritten.rewrite(engine, {})
    assert refused.value.problem == (
        "crio.service starts CRI-O with --default-runtime crun, which takes precedence over every file"
    )
    assert "systemctl cat crio.service" in refused.value.evidence
    # The flags are the running process': the next run would find them again.
    remedy = refused.value.remedy
    assert isinstance(remedy, Remedy)
    assert "systemctl daemon-reload, systemctl restart crio.service " in remedy.text
    assert rewritten.rewrite(engine, {}, WANTED["no"]).changed, "the handler alone goes into the file"


def test_a_flag_that_names_the_handler_is_no_hindrance() -> None:
    assert rewritten.rewrite(engine_facts("crio", "1.33.5", flags=("--default-runtime=nvidia",)), {}).changed


def test_there_are_pairs_enough() -> None:
    assert len(PAIRS) >= 15


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("/etc/crio/crio.conf", "[crio\n", "/etc/crio/crio.conf:1:6"),
        (f"{DIRECTORY}/10-a.conf", "[crio.runtime]\ndefault_runtime = crun\n", f"{DIRECTORY}/10-a.conf:2:19"),
        (f"{DIRECTORY}/10-a.conf", "crio = 1\n", "crio is 1, and CRI-O wants a table"),
        (f"{DIRECTORY}/10-a.conf", "[crio]\nruntime = []\n", "crio.runtime is [], and CRI-O wants a table"),
        (f"{DIRECTORY}/10-a.conf", "[crio.runtime]\nruntimes = 'x'\n", "crio.runtime.runtimes is 'x'"),
    ],
    ids=["open header", "bare value in a drop-in", "crio is a number", "runtime is a list", "runtimes is text"],
)
def test_a_file_that_crio_does_not_take_is_refused_with_its_place(path: str, text: str, problem: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        rewritten.rewrite(engine_facts("crio", "1.33.1"), {path: text})
    assert problem in refused.value.problem
    assert "CRI-O" in refused.value.evidence


@pytest.mark.parametrize("name", [".99-nvidia.toml.gpunode", ".99-nvidia.toml.gpunode-k3_x"])
def test_what_a_cut_write_left_is_nobodys_fault_and_no_setting(name: str) -> None:
    cut = {f"{DIRECTORY}/{name}": '[crio.runtime]\ndefault_runtime = "nvi'}
    assert (
        rewritten.rewrite(engine_facts("crio", "1.33.1"), cut).main
        == rewritten.rewrite(engine_facts("crio", "1.33.1"), {}).main
    )
    with pytest.raises(ConfigFileError):
        rewritten.rewrite(engine_facts("crio", "1.33.1"), {f"{DIRECTORY}/.gpunode": "x"})


def test_a_directory_named_on_the_command_line_is_the_one() -> None:
    facts = engine_facts("crio", "1.33.1", flags=("--config-dir", "/srv/crio.d/"))
    assert rewritten.rewrite(facts, {}).main.path == "/srv/crio.d/99-nvidia.toml"


def test_a_runtime_out_of_path_is_pointed_out() -> None:
    text = 'crio.runtime.default_runtime = "crun"\ncrio.runtime.runtimes.crun.runtime_path = "/usr/libexec/crio/crun"\n'
    note = rewritten.rewrite(engine_facts("crio", "1.33.1"), {f"{DIRECTORY}/10-c.conf": text}).notes[0]
    assert "must find /usr/libexec/crio/crun before any other" in note


def test_it_is_written_restarted_and_asked() -> None:
    facts = engine_facts("crio", "1.33.1", effective_default="crun")
    (step,), _ = runtime_steps(rewritten.host_of(facts, {}), Spec())
    look, put, restart, verify = step.actions
    assert isinstance(look, Run)
    assert look.description == "look for /usr/bin/nvidia-container-runtime"
    assert step.title == f"{OURS}: + runtime nvidia, default crun → nvidia; restart, pods keep running"
    assert isinstance(put, PutFile)
    assert isinstance(restart, Run)
    assert restart.description == "systemctl restart crio.service"
    assert isinstance(verify, Run)
    assert verify.argv[3:6] == ("crio", "/var/run/crio/crio.sock", "nvidia")
    assert [a.argv[3:6] for a in step.undo[1:] if isinstance(a, Run)] == [("crio", "/var/run/crio/crio.sock", "crun")]


WRITTEN = """[crio.runtime]
default_runtime = "nvidia"

[crio.runtime.runtimes.nvidia]
runtime_path = "/usr/bin/nvidia-container-runtime"
"""


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        ("", WRITTEN, {}),
        ("", WRITTEN + "[crio.metrics]\nenable_metrics = true\n", {"crio": {"metrics": {"enable_metrics": True}}}),
        ("", WRITTEN.replace('= "nvidia"', '= "runc"'), {"crio": {"runtime": {"default_runtime": "runc"}}}),
        ('[crio.runtime]\ndefault_runtime = "crun"\n', WRITTEN, {"crio": {"runtime": {"default_runtime": "crun"}}}),
    ],
    ids=["all of it", "what came since is kept", "a default chosen since", "the file's own default is restored"],
)  # fmt: skip
def test_undo_takes_out_what_gpunode_put_in(before: str, now: str, left: dict[str, object]) -> None:
    got = Crio().without(OURS, now, Removal("nvidia", "crun", before))
    assert tomllib.loads(got) == left
    assert (got == "") is (not left)
