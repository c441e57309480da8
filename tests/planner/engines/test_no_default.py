"""--no-default on a host where nvidia is the default: taken back where gpunode set it, else said whose it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.facts.journal import parse_journal
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, JournalFacts
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines.hosts import PATHS, engine_facts, file_facts, host_with
from tests.planner.engines.kubelets import node

DOCKER, CONTAINERD, K3S = PATHS["docker"], PATHS["containerd"], "/etc/rancher/k3s/config.yaml.d/99-gpunode.yaml"
ENTRY = '"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}'
BOTH = f'{{{ENTRY}, "default-runtime": "nvidia"}}\n'
TABLE = '[plugins."io.containerd.grpc.v1.cri".containerd'
TOML = f"""version = 2
{TABLE}]
default_runtime_name = "nvidia"  # fast
{TABLE}.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
{TABLE}.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
{TABLE}.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
ONLY_NAMED = Spec(runtime=RuntimeSpec(default=False))


def host(name: str, path: str, text: str, *, ours: bool = True, **observed: object) -> HostFacts:
    seen = {"effective_default": "nvidia", "handlers": ("nvidia", "runc"), **observed}
    made = host_with(engine_facts(name, {"docker": "26.1.5"}.get(name, "1.7.24"), **seen), files={path: text})
    return replace(made, journal=JournalFacts(defaults={name: "runc"} if ours else {}))


def planned(host: HostFacts, spec: Spec = ONLY_NAMED) -> list[Step | Kept]:
    steps, kept = runtime_steps(host, spec)
    return [*steps, *kept]


def removal(host: HostFacts, spec: Spec = ONLY_NAMED) -> Step:
    (step,) = [one for one in planned(host, spec) if one.id.endswith(".no-default") and isinstance(one, Step)]
    return step


def test_the_kubelet_of_a_node_that_was_ready_is_asked_then() -> None:
    ready = node("1.20.2", {}, runs=True)
    step = removal(replace(host("containerd", CONTAINERD, TOML), kubernetes=ready.kubernetes, services=ready.services))
    for actions in (step.actions, step.undo):
        last = actions[-1]
        assert isinstance(last, Run)
        assert last.description == "ask the running kubelet for its health"


def test_docker_gets_the_default_from_before_as_an_undo_gives_it_back() -> None:
    step = removal(host("docker", DOCKER, BOTH))
    assert step.title == f"{DOCKER}: default runtime nvidia → runc; reload, no container restarts"
    puts = [action.text for action in step.actions if isinstance(action, PutFile)]
    assert (puts[0], puts[-1]) == (f"{{{ENTRY}}}\n", f"{{{ENTRY}}}\n")
    assert '"default-runtime": "runc"' in puts[1]  # loaded first: dockerd keeps a default that only leaves its file
    last = step.actions[-1]
    assert isinstance(last, Run)
    assert last.argv[5] == "runc"
    assert step.for_undo.engine == "docker"
    assert step.undo


def test_containerd_keeps_the_handler_and_the_comment() -> None:
    step = removal(host("containerd", CONTAINERD, TOML))
    put = step.actions[0]
    assert isinstance(put, PutFile)
    assert put.text == TOML.replace('"nvidia"  # fast', '"runc"  # fast')
    assert put.validate is not None


def test_a_file_that_another_step_writes_first_is_taken_as_that_leaves_it() -> None:
    """--no-default --cdi on docker 26: the file gets features.cdi, and then loses its default."""
    spec = Spec(runtime=RuntimeSpec(default=False, cdi=True))
    made = host("docker", DOCKER, BOTH, cdi=False, containers_running=0)
    first, second = (one for one in planned(made, spec) if isinstance(one, Step))
    (before,) = [action for action in first.actions if isinstance(action, PutFile)]
    after = second.actions[0]
    assert isinstance(after, PutFile)
    assert after.expect_sha256 == file_facts(DOCKER, before.text).sha256
    assert '"cdi": true' in after.text
    assert "default-runtime" not in after.text


def test_a_default_that_somebody_else_set_is_said_with_its_place() -> None:
    texts = [one.text for one in planned(host("docker", DOCKER, BOTH, ours=False)) if isinstance(one, Kept)]
    assert any(
        text.startswith(f"nvidia remains the default runtime of docker ({DOCKER}:1): gpunode's journal does not have")
        for text in texts
    )
    assert not [one for one in planned(host("docker", DOCKER, BOTH, ours=False)) if isinstance(one, Step)]


def test_a_flag_is_nobodys_to_take_out() -> None:
    made = host("docker", DOCKER, f"{{{ENTRY}}}\n", flags=("--default-runtime=nvidia",))
    assert any("(a flag of the daemon)" in one.text for one in planned(made) if isinstance(one, Kept))


@pytest.mark.parametrize("spec", [Spec(), ONLY_NAMED], ids=["nvidia is wanted", "another default already"])
def test_with_nothing_to_take_back_nothing_is_said(spec: Spec) -> None:
    text = BOTH if spec.runtime.default else f"{{{ENTRY}}}\n"
    default = "nvidia" if spec.runtime.default else "runc"
    assert [one.id for one in planned(host("docker", DOCKER, text, effective_default=default), spec)] == [
        "docker.default"
    ]


def test_an_engine_that_is_down_gets_its_file_only() -> None:
    step = removal(host("docker", DOCKER, BOTH, active=False, effective_default=None))
    assert [type(action) for action in step.actions] == [PutFile]
    assert "written only: docker.service is not running" in step.title


# ---- what the journal says about it

RUN = '{"kind": "run-begin", "run": "r1", "before": {"default_runtimes": {"docker": "crun"}, "handler": "nvidia"}}'
BEGIN = '{"kind": "step-begin", "run": "r1", "step": "docker.default", "for_undo": {"engine": "docker"}}'
END = '{"kind": "step-end", "run": "r1", "step": "docker.default", "status": "%s"}'
AGAIN = [line.replace("r1", "r2").replace("crun", "nvidia") for line in (RUN, BEGIN, END % "done")]
UNDO = ['{"kind": "run-begin", "run": "u1", "before": {"undo": {"runs": ["r1"]}}}']


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([RUN, BEGIN, END % "done"], {"docker": "crun"}),
        ([RUN, BEGIN, END % "done", *AGAIN], {"docker": "crun"}),
        ([RUN, BEGIN, END % "failed"], {}),
        ([RUN, BEGIN], {}),
        ([RUN, BEGIN, END % "done", *UNDO, '{"kind": "run-end", "run": "u1", "status": "done"}'], {}),
        ([RUN, BEGIN, END % "done", *UNDO], {"docker": "crun"}),
        ([BEGIN, END % "done"], {}),
        (['{"kind": "run-begin", "run": "r1", "before": 3}', BEGIN, END % "done"], {}),
    ],
    ids=[
        "set by a setup",
        "a second setup found gpunode's own",
        "rolled back",
        "never ended",
        "undone",
        "an undo that never ended",
        "the run's beginning is too far back",
        "no table",
    ],
)
def test_the_default_from_before_is_in_the_journal(lines: list[str], expected: dict[str, str]) -> None:
    assert dict(parse_journal("\n".join(lines), {}).defaults) == expected
