"""microk8s' template before and after; every placeholder is unchanged. microk8s itself was not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpunode.engines.base import Removal
from gpunode.engines.kubernetes.microk8s import Microk8s
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.spec import Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines import rewritten, trees
from tests.engines.hosts import engine_facts

PAIRS = trees.pairs(Path(__file__).parent / "microk8s")
TEMPLATE = "/var/snap/microk8s/current/args/containerd-template.toml"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_tree_before_and_after(pair: trees.Pair) -> None:
    rewritten.check(pair, "microk8s")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_placeholders_and_comments_are_unchanged(pair: trees.Pair) -> None:
    before, after = pair.before[TEMPLATE], pair.after[TEMPLATE]
    gone = [] if pair.said.get("want") == "no" else ["${RUNTIME}"]
    kept = [word for word in re.findall(r"\$\{\w+\}", before) if word not in gone]
    assert re.findall(r"\$\{\w+\}", after) == kept
    assert re.findall(r"#.*", after) == re.findall(r"#.*", before)


def test_a_template_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnsupportedHost, match="from which microk8s writes its"):
        rewritten.rewrite(engine_facts("microk8s", "1.6.36"), {})


def test_a_placeholder_outside_a_text_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigFileError) as refused:
        rewritten.rewrite(engine_facts("microk8s", "1.6.36"), {TEMPLATE: "version = 2\noom_score = ${SCORE}\n"})
    assert f"{TEMPLATE}:2:13" in refused.value.problem


def test_its_own_containerd_is_restarted_and_asked() -> None:
    facts = engine_facts("microk8s", "1.6.36", snap=True)
    (step,), _ = runtime_steps(rewritten.host_of(facts, {TEMPLATE: "version = 2\n"}), Spec())
    _, put, restart, verify = step.actions
    assert step.title == f"{TEMPLATE}: + handler nvidia, default runc → nvidia; restart of its containerd"
    assert isinstance(put, PutFile)
    assert isinstance(restart, Run)
    assert restart.description == "systemctl restart snap.microk8s.daemon-containerd.service"
    assert isinstance(verify, Run)
    assert verify.argv[3:6] == ("microk8s", "/var/snap/microk8s/common/run/containerd.sock", "nvidia")


def test_undo_restores_the_placeholder() -> None:
    pair = next(pair for pair in PAIRS if pair.name == "template")
    before, after = pair.before[TEMPLATE], pair.after[TEMPLATE] + "# added since\n"
    left = Microk8s().without(TEMPLATE, after, Removal("nvidia", "runc", before))
    assert 'default_runtime_name = "${RUNTIME}"' in left
    assert "runtimes.nvidia" not in left
    assert left.endswith("# added since\n")


@pytest.mark.parametrize("path", ["7964", "x3", "current"])
def test_the_template_is_named_as_it_is_found_after_a_refresh(path: str) -> None:
    named = Microk8s().lasting(f"/var/snap/microk8s/{path}/args/containerd-template.toml")
    assert named == TEMPLATE
