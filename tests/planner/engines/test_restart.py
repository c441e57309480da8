"""`docker run --gpus` and what else a reload does not bring: when dockerd is restarted, and who does it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, ToolkitFacts
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines.hosts import PATHS, engine_facts, host_with

HOOK = "/usr/bin/nvidia-container-runtime-hook"
RIGHT = '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "nvidia"}\n'
LIVE = RIGHT.replace("{", '{"live-restore": true, ', 1)
IN_FORCE: dict[str, Any] = {"effective_default": "nvidia", "handlers": ("nvidia", "runc")}
BUSY: dict[str, Any] = {"live_restore": False, "containers_running": 7, "running": ("web", "db", "a", "b", "c")}
INSTALLED = 1_795_000_000
WORD = "dockerd looks for nvidia-container-runtime-hook, which docker run --gpus needs, only when it starts"


def docker(text: str = RIGHT, hook: str | None = HOOK, init: str = "systemd", **observed: Any) -> HostFacts:
    """A dockerd from ten seconds before the hook was there."""
    facts = engine_facts("docker", "26.1.5", init=init, **{"started_at": INSTALLED - 10, **IN_FORCE, **observed})
    toolkit = ToolkitFacts("1.20.0", hook_path=hook, hook_since=INSTALLED)
    return replace(host_with(facts, files={PATHS["docker"]: text}, init=init), toolkit=toolkit)


def outcome(host: HostFacts, spec: Spec = Spec(), *, coming: bool = False) -> Step | Kept:  # noqa: B008  # frozen
    steps, kept = runtime_steps(host, spec, coming=coming)
    both: list[Step | Kept] = [*steps, *kept]
    assert len(both) == 1
    return both[0]


def ran(step: Step | Kept) -> list[str]:
    return [a.description for a in step.actions if isinstance(a, Run)] if isinstance(step, Step) else []


@pytest.mark.parametrize(
    ("host", "spec", "how"),
    [
        (docker(containers_running=0), Spec(), "restart, no container stops"),
        (docker(LIVE, live_restore=True, containers_running=3), Spec(), "restart, no container stops"),
        (
            docker(**BUSY),
            Spec(allow_container_restart=True),
            "restart, which stops the containers web, db, a, b and 3 more",
        ),
        (docker("{}", containers_running=0), Spec(), "restart, no container stops"),
    ],
    ids=["nothing runs", "live-restore", "allowed", "with a change of the file"],
)
def test_dockerd_that_started_before_the_hook_is_restarted(host: HostFacts, spec: Spec, how: str) -> None:
    step = outcome(host, spec)
    assert isinstance(step, Step)
    assert step.title.endswith(how)
    assert WORD in step.why
    assert ran(step)[-3:] == [
        "systemctl restart docker.service",
        "ask the running docker for its default runtime",
        "check that the running docker found nvidia-container-runtime-hook at its start",
    ]
    assert step.by_hand == ""


@pytest.mark.parametrize(
    ("observed", "stopped"),
    [
        (BUSY, "the containers web, db, a, b and 3 more"),
        ({**BUSY, "containers_running": 6}, "the containers web, db, a, b and 2 more"),
        ({**BUSY, "running": ("$(x)",), "containers_running": 1}, "the container '$(x)'"),
        ({**BUSY, "running": ()}, "7 containers"),
        ({"containers_running": None}, "the containers that run"),
        ({**BUSY, "live_restore": True, "swarm": True}, "the containers web, db, a, b and 3 more"),
    ],
    ids=["by name", "as many as run", "quoted", "names are not known", "nothing is known", "a swarm"],
)
def test_containers_are_named_and_their_dockerd_left_to_the_user(observed: dict[str, Any], stopped: str) -> None:
    words = (
        f"{WORD}, and a restart would stop {stopped}, since live-restore does not keep them. When they may stop: "
        "systemctl restart docker, or gpunode setup again with --allow-container-restart"
    )
    kept = outcome(docker(LIVE, **observed))
    assert isinstance(kept, Kept)
    assert kept.by_hand == words
    step = outcome(docker("{}", **observed))
    assert isinstance(step, Step)
    assert step.by_hand == words
    assert step.title.endswith("; reload, no container restarts")
    assert "systemctl restart docker.service" not in ran(step)


def test_live_restore_that_left_the_file_would_not_outlive_the_start() -> None:
    """dockerd keeps a setting whose key has gone, until it starts again: then it stops what runs."""
    assert outcome(docker(RIGHT, **{**BUSY, "live_restore": True})).by_hand
    by_flag = docker(RIGHT, flags=("--live-restore", "-H", "fd://"), **{**BUSY, "live_restore": True})
    assert "systemctl restart docker.service" in ran(outcome(by_flag))


def test_a_restart_that_nothing_here_does_is_a_manual_step() -> None:
    kept = outcome(docker(init="none", containers_running=0, pid=812))
    assert "kill 812; docker &" in kept.by_hand
    step = outcome(docker("{}", init="none", containers_running=0, pid=812))
    assert "SIGHUP to dockerd" in ran(step)
    assert "kill 812; docker &" in step.by_hand


def test_a_users_dockerd_is_that_users_to_restart() -> None:
    kept = outcome(docker(user="ann", owner="1000:100", containers_running=0), Spec(runtimes=("docker",)))
    assert kept.by_hand.startswith(f"{WORD}. As ann: systemctl --user restart docker")


@pytest.mark.parametrize(
    ("host", "coming"),
    [
        (docker(started_at=INSTALLED - 1), False),
        (docker(started_at=INSTALLED + 5), False),
        (docker(started_at=None), False),
        (docker(hook=None), False),
        (docker(hook="/opt/nvidia/nvidia-container-runtime-hook"), False),
        (docker(started_at=INSTALLED + 5), True),
    ],
    ids=["in the same second", "after it", "not known", "no hook", "not in dockerd's PATH", "an upgrade is coming"],
)
def test_a_reload_will_do(host: HostFacts, coming: bool) -> None:
    kept = outcome(host, coming=coming)
    assert isinstance(kept, Kept)
    assert kept.by_hand == ""


def test_the_hook_that_the_same_plan_installs_is_later_than_every_dockerd() -> None:
    assert "systemctl restart docker.service" in ran(outcome(docker(hook=None, containers_running=0), coming=True))
