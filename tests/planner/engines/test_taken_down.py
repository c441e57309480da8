"""A unit that systemd stops with the engine's: docker-ce 18.09 to 20.10 binds docker.service to containerd.service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.services import parse_services, parse_units
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, JournalFacts, ServiceFacts
from gpunode.model.past import Past
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from gpunode.planner.undo.plan import undo_plan
from tests.engines.hosts import PATHS, engine_facts, host_with
from tests.planner.engines.test_no_default import TOML as RIGHT
from tests.planner.undo.test_plan import past_file

BARE = "version = 2\n"
BUSY: dict[str, Any] = {"live_restore": False, "containers_running": 2, "running": ("ci-1", "ci-2")}
NVIDIA: dict[str, Any] = {"effective_default": "nvidia", "handlers": ("nvidia", "runc")}
BOUND = ServiceFacts("loaded", "active", "running", "enabled", dependents=("docker.service",))
BY_HAND = (
    "containerd takes a new file by a restart only, and systemd restarts docker.service with containerd.service "
    "(Requires=, BindsTo= or PartOf=; systemctl show -p RequiredBy,BoundBy,ConsistsOf containerd.service), and a "
    "restart would stop the containers ci-1, ci-2, since live-restore does not keep them. When they may stop: "
    "systemctl restart containerd"
)
OR_AGAIN = ", or gpunode setup again with --allow-container-restart"
ALLOWED = Spec(runtimes=("containerd",), allow_container_restart=True)


def node(text: str = BARE, state: ServiceFacts | None = BOUND, *, docker: Any = BUSY, **observed: Any) -> HostFacts:
    engines = (engine_facts("docker", "20.10.24", **docker), engine_facts("containerd", "1.6.9", **observed))
    host = host_with(*engines, files={PATHS["docker"]: "{}\n", PATHS["containerd"]: text}, kubelet="systemd")
    return replace(host, services={} if state is None else {"containerd.service": state})


def outcome(host: HostFacts, spec: Spec = Spec(runtimes=("containerd",))) -> Step | Kept:  # noqa: B008  # frozen
    steps, kept = runtime_steps(host, spec)
    both: list[Step | Kept] = [*steps, *kept]
    return both[-1]


def ran(step: Step | Kept) -> list[str]:
    return [a.description for a in step.actions if isinstance(a, Run)] if isinstance(step, Step) else []


def test_a_restart_that_would_stop_dockers_containers_is_left_to_the_user() -> None:
    step = outcome(node())
    assert isinstance(step, Step)
    assert step.title.endswith("; written only: a restart of containerd would stop the containers ci-1, ci-2")
    assert [type(action) for action in step.actions] == [PutFile]
    assert step.by_hand == BY_HAND + OR_AGAIN
    assert step.safe


def test_it_is_planned_where_it_is_allowed_and_docker_is_asked_then() -> None:
    step = outcome(node(), ALLOWED)
    assert isinstance(step, Step)
    assert step.title.endswith("; restart, which stops the containers ci-1, ci-2")
    assert not step.safe
    assert step.by_hand == ""
    again = ["ask the running containerd for its default runtime", "ask the running docker for its default runtime"]
    assert ran(step)[-3:] == ["systemctl restart containerd.service", *again]
    asked = [a.argv[5] for a in (*step.actions, *step.undo) if isinstance(a, Run) and a.argv[3:4] == ("docker",)]
    assert asked == ["-", "-"]  # its own step may have changed its default by then


def test_the_file_is_right_and_the_daemon_is_not() -> None:
    kept = outcome(node(RIGHT))
    assert isinstance(kept, Kept)
    assert kept.by_hand == BY_HAND + OR_AGAIN
    assert "systemctl restart containerd.service" in ran(outcome(node(RIGHT), ALLOWED))


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        (node(state=None), False),
        (node(state=replace(BOUND, dependents=())), False),
        (node(state=replace(BOUND, dependents=("kubelet.service",))), False),
        (node(docker={**BUSY, "active": False}), False),
        (node(docker={**BUSY, "containers_running": 0}), True),
    ],
    ids=["not known", "Wants= alone", "another unit", "docker is stopped", "docker has no containers"],
)
def test_it_is_restarted_as_before_where_nothing_is_lost(host: HostFacts, asked: bool) -> None:
    step = outcome(host)
    assert isinstance(step, Step)
    assert step.title.endswith("; restart, pods keep running")
    assert step.safe
    assert ("ask the running docker for its default runtime" in ran(step)) is asked


def test_where_all_is_right_nothing_is_to_be_done() -> None:
    kept = outcome(node(RIGHT, **NVIDIA))
    assert isinstance(kept, Kept)
    assert kept.by_hand == ""


def test_no_default_restarts_it_as_little() -> None:
    host = replace(node(RIGHT, **NVIDIA), journal=JournalFacts(defaults={"containerd": "runc"}))
    spec = Spec(runtimes=("containerd",), runtime=RuntimeSpec(default=False))
    step = outcome_of(host, spec)
    assert [type(action) for action in step.actions] == [PutFile]
    assert step.by_hand == BY_HAND
    allowed = outcome_of(host, replace(spec, allow_container_restart=True))
    assert "systemctl restart containerd.service" in ran(allowed)
    assert not allowed.safe


def outcome_of(host: HostFacts, spec: Spec) -> Step:
    (step,) = [one for one in runtime_steps(host, spec)[0] if one.id == "containerd.no-default"]
    return step


@pytest.mark.parametrize(("state", "held"), [(BOUND, True), (None, False)], ids=["bound", "not known"])
def test_an_undo_restarts_it_as_little(state: ServiceFacts | None, held: bool) -> None:
    path = PATHS["containerd"]
    file = past_file(path, "containerd.default", before=BARE, left=RIGHT, now=RIGHT)
    past = Past(journal=True, files=(file,), runs=("r1.1",), engines=("containerd",), defaults={"containerd": "runc"})
    made = undo_plan(node(RIGHT, state, **NVIDIA), past, load_catalog(), packages=False)
    (step,) = made.steps
    assert ("systemctl restart containerd.service" in ran(step)) is not held
    assert step.by_hand == (BY_HAND if held else "")
    assert made.undo is not None
    assert made.undo.pending is held


def test_what_systemd_says_of_it() -> None:
    text = "Id=containerd.service\nRequiredBy=a.service docker.service\nBoundBy=docker.service\nConsistsOf=\n"
    assert parse_services(parse_units(text))["containerd.service"].dependents == ("a.service", "docker.service")
    assert parse_services(parse_units("Id=containerd.service\n"))["containerd.service"].dependents == ()


def test_which_units_systemd_starts_it_with() -> None:
    text = "Id=docker.service\nRequiredBy=a.service\nConsistsOf=b.service\nWantedBy=multi-user.target a.service\n"
    assert parse_services(parse_units(text))["docker.service"].wanted_by == ("multi-user.target", "a.service")
    assert parse_services(parse_units("Id=docker.service\nWantedBy=\n"))["docker.service"].wanted_by == ()
    text = "Id=kubelet.service\nWantedBy=\nTriggeredBy=kubelet.path\n"
    assert parse_services(parse_units(text))["kubelet.service"].wanted_by == ("kubelet.path",)
    assert parse_services(parse_units("Id=docker.service\n"))["docker.service"].wanted_by is None
