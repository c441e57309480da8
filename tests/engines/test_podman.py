"""containers.conf and its drop-ins before and after; tests/lab/test_podman.py puts the same pairs to podman itself."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.engines.base import Removal
from gpunode.engines.podman import DIRECTORY, DROP_IN, MAIN, ROOTS, Podman, removed
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import ToolkitFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Kept
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines import trees
from tests.engines.hosts import engine_facts, host_with

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAIRS = trees.pairs(Path(__file__).parent / "podman")
WANTED = {
    "no": RuntimeSpec(default=False),
    "gpu": RuntimeSpec(handler="gpu"),
    "opt": RuntimeSpec(path="/opt/gpu/nvidia-container-runtime"),
}
NVIDIA = "/usr/bin/nvidia-container-runtime"


def written(tree: dict[str, str], want: RuntimeSpec, default: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """(the tree after a rewrite, what it said)."""
    facts = engine_facts("podman", "5.4.2", effective_default=default)
    result = Podman().rewrite(host_with(facts, files=tree), facts, want)
    return {**tree, **{edit.path: edit.after for edit in result.edits if edit.changed}}, result.added


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_tree_before_and_after(pair: trees.Pair) -> None:
    want = WANTED.get(pair.said.get("want", ""), RuntimeSpec())
    was = pair.said["was"]
    after, said = written(pair.before, want, None if was == "broken" else was)
    assert after == pair.after
    assert (", ".join(said) or "nothing") == pair.said["said"]
    assert written(after, want, want.handler if want.default else was)[0] == after


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_what_gpunode_does_not_manage_is_unchanged(pair: trees.Pair) -> None:
    want = WANTED.get(pair.said.get("want", ""), RuntimeSpec())
    for path, text in pair.before.items():
        if path.endswith(".conf"):
            assert others(text, want.handler) == others(pair.after[path], want.handler)
            assert comments(text) == comments(pair.after[path])


def others(text: str, handler: str) -> dict[str, Any]:
    """A second reader's values without the two that gpunode may set."""
    plain = tomllib.loads(text.removeprefix("\ufeff"))
    engine = plain.get("engine", {})
    engine.pop("runtime", None)
    engine.get("runtimes", {}).pop(handler, None)
    return {**plain, "engine": {key: value for key, value in engine.items() if value != {}}}


def comments(text: str) -> list[str]:
    return [line[line.index("#") :].rstrip() for line in text.splitlines() if "#" in line]


KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | KEYS
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=6
)
SECTIONS = st.dictionaries(
    KEYS.filter(lambda key: key != "engine"), st.dictionaries(KEYS, VALUES, max_size=3), max_size=3
)
ENGINE = st.dictionaries(KEYS.filter(lambda key: key not in ("runtime", "runtimes")), VALUES, max_size=3)
RUNTIMES = st.dictionaries(KEYS.filter(lambda key: key != "nvidia"), st.lists(KEYS, max_size=2), max_size=2)


@settings(max_examples=60, deadline=None)
@given(SECTIONS, ENGINE, RUNTIMES, st.sampled_from(["crun", "runc", "/usr/bin/crun"]))
def test_any_legal_file_keeps_its_other_values_and_twice_is_once_and_undo_restores_them(
    sections: dict[str, Any], engine: dict[str, Any], runtimes: dict[str, Any], default: str
) -> None:
    before = {**sections, "engine": {**engine, "runtime": default, **({"runtimes": runtimes} if runtimes else {})}}
    text = tomlkit.dumps(before)
    after = written({MAIN: text}, RuntimeSpec(), None)[0][MAIN]
    plain = tomllib.loads(after)
    assert plain["engine"].pop("runtime") == "nvidia"
    assert plain["engine"]["runtimes"].pop("nvidia") == [NVIDIA]
    assert plain["engine"].pop("runtimes") == runtimes
    assert plain == {**sections, "engine": engine}
    assert written({MAIN: after}, RuntimeSpec(), None)[0][MAIN] == after
    assert tomllib.loads(Podman().without(MAIN, after, Removal("nvidia", "crun", text))) == before


def test_there_are_pairs_enough() -> None:
    assert len(PAIRS) >= 60


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (MAIN, "[engine\n", f"{MAIN}:1:8"),
        (MAIN, '[engine]\nruntime = crun\n', f"{MAIN}:2:11"),
        (f"{DIRECTORY}/10-a.conf", '[engine]\n[engine]\n', f"{DIRECTORY}/10-a.conf:2:"),
        (MAIN, 'engine = "crun"\n', "engine is 'crun', and podman wants a table"),
        (MAIN, "[engine]\nruntime = 1\n", "engine.runtime is 1, and podman wants a text"),
        (MAIN, "[engine]\nruntimes = []\n", "engine.runtimes is [], and podman wants a table"),
        (MAIN, '[engine.runtimes]\ncrun = "/usr/bin/crun"\n', "engine.runtimes.crun is '/usr/bin/crun'"),
        (MAIN, '[engine.runtimes]\ncrun = [1]\n', "engine.runtimes.crun is [1]"),
        (MAIN, "[engine]\nruntime = 'caf\udce9'\n", "not UTF-8"),
    ],
    ids=[
        "open header", "bare value", "table twice, in a drop-in", "engine is text", "runtime is a number",
        "runtimes is a list", "a path instead of a list", "a list of numbers", "Latin-1",
    ],
)  # fmt: skip
def test_a_file_that_podman_does_not_take_is_refused_with_its_place(path: str, text: str, problem: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        written({path: text}, RuntimeSpec(), None)
    assert problem in refused.value.problem
    assert "podman" in refused.value.evidence


def test_a_drop_in_that_cannot_be_read_is_refused() -> None:
    facts = engine_facts("podman", "5.4.2")
    host = host_with(facts, files={})
    path = f"{DIRECTORY}/10-a.conf"
    closed = type(host)(**{**vars(host), "files": {path: FileFacts(path, unread="permission denied")}})
    with pytest.raises(ConfigFileError, match="permission denied"):
        Podman().rewrite(closed, facts, RuntimeSpec())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (Spec(), "served by CDI and needs no runtime"),
        (Spec(runtimes=("podman",), runtime=RuntimeSpec(cdi=True)), "no configuration for CDI"),
    ],
    ids=["auto leaves it alone", "with --cdi nothing is written"],
)
def test_podman_is_kept_where_cdi_is_enough(spec: Spec, said: str) -> None:
    facts = engine_facts("podman", "5.4.2", effective_default="crun")
    steps, (kept,) = runtime_steps(host_with(facts, files={}), spec)
    assert steps == ()
    assert isinstance(kept, Kept)
    assert said in kept.text
    assert "podman run --device nvidia.com/gpu=all" in kept.text


@pytest.mark.parametrize(
    ("version", "specification", "said"),
    [
        ("4.9.3", None, "gpu=all, once the toolkit's CDI specification is one that podman 4.9.3 can read"),
        ("4.9.3", "0.7.0", "gpu=all, once the toolkit's CDI specification is one that podman 4.9.3 can read"),
        ("4.9.3", "0.5.0", "gpu=all; --runtime podman"),
        ("5.4.2", "0.7.0", "gpu=all; --runtime podman"),
        ("3.4.4", "0.5.0", "podman 3.4.4 has no CDI: --runtime podman"),
    ],
)
def test_the_device_is_advised_where_it_works(version: str, specification: str | None, said: str) -> None:
    facts = engine_facts("podman", version, effective_default="crun")
    path = "/var/run/cdi/nvidia.yaml"
    host = host_with(facts, files={path: f"cdiVersion: {specification}\n"} if specification else {})
    host = replace(host, toolkit=ToolkitFacts(cdi_specs=(path,) if specification else ()))
    _, (kept,) = runtime_steps(host, Spec())
    assert said in kept.text


def test_cdi_of_a_podman_without_it_is_refused() -> None:
    facts = engine_facts("podman", "3.4.4", effective_default="crun")
    with pytest.raises(UnsupportedHost, match=r"podman 3\.4\.4 has no CDI"):
        Podman().rewrite(host_with(facts, files={}), facts, RuntimeSpec(cdi=True))


def test_by_name_it_is_written_validated_and_asked_without_a_daemon() -> None:
    facts = engine_facts("podman", "5.4.2", effective_default="crun", binary="/usr/bin/podman")
    host = host_with(facts, files={}, init="none")
    (step,), _ = runtime_steps(host, Spec(runtimes=("podman",)))
    _, put, ask = step.actions
    assert step.title == (
        f"{DROP_IN}: + engine.runtimes.nvidia, default crun → nvidia; no daemon to restart, new containers use it"
    )
    validate = getattr(put, "validate")  # noqa: B009  # a PutFile among the actions
    assert validate.env == (("CONTAINERS_CONF_OVERRIDE", "{candidate}"),)
    assert validate.argv[:2] == ("/usr/bin/podman", "info")
    assert isinstance(ask, Run)
    assert ask.argv[3:] == ("/usr/bin/podman", "nvidia")
    (back,) = step.undo
    assert isinstance(back, Run)
    assert back.argv[3:] == ("/usr/bin/podman", "crun")


def test_an_old_podman_has_no_override_so_nothing_validates() -> None:
    assert Podman().validate(engine_facts("podman", "4.3.1"), DROP_IN) is None


OURS = f'[engine]\nruntime = "nvidia"\n\n[engine.runtimes]\nnvidia = ["{NVIDIA}"]\n'


@pytest.mark.parametrize(
    ("text", "previous", "left"),
    [
        (OURS, None, ""),
        (f"# mine\n{OURS}", "crun", '# mine\n[engine]\nruntime = "crun"\n'),
        (OURS.replace('"nvidia"', '"runc" # since', 1), "crun", '[engine]\nruntime = "runc" # since\n'),
        ("[engine]\nruntime = 'nvidia'\nevents_logger = 'file'\n", None, "[engine]\nevents_logger = 'file'\n"),
        ("[containers]\ntz = 'local'\n", "crun", "[containers]\ntz = 'local'\n"),
    ],
    ids=["all of it", "the default before", "a default chosen since", "other keys are kept", "nothing of gpunode's"],
)  # fmt: skip
def test_removed(text: str, previous: str | None, left: str) -> None:
    assert removed(text, "nvidia", previous).strip() == left.strip()


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        ("", OURS, ""),
        ("", OURS + "\n[network]\n", "[network]\n"),
        ('[engine]\nruntime = "runc"\n', OURS + "\n[network]\n", '[engine]\nruntime = "runc"\n\n[network]\n'),
    ],
    ids=["a file of gpunode's goes", "what came since is kept", "the file's own default is restored"],
)
def test_undo_takes_out_what_gpunode_put_in(before: str, now: str, left: str) -> None:
    got = Podman().without(MAIN, now, Removal("nvidia", "crun", before))
    assert tomllib.loads(got) == tomllib.loads(left)
    assert (got == "") is (left == "")


@pytest.mark.parametrize(
    ("version", "path"), [("4.9.3", DROP_IN), ("5.0.0", ROOTS), (None, ROOTS)], ids=["4.9", "5.0", "not known"]
)
def test_roots_own_file_counts_where_podman_reads_it_as_root(version: str | None, path: str) -> None:
    facts = engine_facts("podman", version, effective_default="crun")
    host = host_with(facts, files={ROOTS: '[engine]\nruntime = "runc"\n'})
    assert [edit.path for edit in Podman().rewrite(host, facts, RuntimeSpec()).edits] == [path]


@pytest.mark.parametrize(("path", "said"), [(MAIN, True), (ROOTS, False)], ids=["of all", "of root alone"])
def test_a_plan_says_that_rootless_users_read_the_file_as_well(path: str, said: bool) -> None:
    facts = engine_facts("podman", "5.4.2", effective_default="runc")
    host = host_with(facts, files={path: '[engine]\nruntime = "runc"\n'})
    notes = Podman().rewrite(host, facts, RuntimeSpec()).notes
    assert any(note.startswith(f"rootless podman reads {path} as well") for note in notes) is said
