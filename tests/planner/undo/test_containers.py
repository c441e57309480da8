"""Containers that people started since setup: named first, kept alive by the handler, or lost where that is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import PutFile, RemoveFile
from gpunode.model.containers import Container, Need
from gpunode.model.facts import HostFacts
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.past import Past
from gpunode.model.plan import Plan
from gpunode.planner.undo.containers import needs_handler, questions
from gpunode.planner.undo.plan import undo_plan
from tests.engines.hosts import PATHS, engine_facts, host_with
from tests.planner.undo.test_plan import ADDED, OLD, OURS, asked, docker_file, docker_host, docker_past, past_file

DOCKER, CONTAINERD = PATHS["docker"], PATHS["containerd"]
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
KEPT = f'{{\n    "debug": true,\n{ADDED}\n}}\n'
TOOLKIT = "nvidia-container-toolkit"


def using(need: Need = "handler", engine: str = "docker", name: str = "web") -> Container:
    return Container(engine, need, f"id-of-{name}", name)


def made(host: HostFacts, past: Past, *containers: Container, **more: Any) -> Plan:
    return undo_plan(host, past, load_catalog(), containers=containers, **more)


def texts(plan: Plan) -> list[str]:
    return [kept.text for kept in plan.kept]


def test_the_default_is_restored_and_the_handler_stays_for_them() -> None:
    plan = made(docker_host(), docker_past(docker_file()), using(), using(name="job"))
    (step,) = plan.steps
    assert step.title.startswith(f"{DOCKER}: nvidia is no longer the default, and remains for the containers that use")
    puts = [action for action in step.actions if isinstance(action, PutFile)]
    assert (puts[0].text, puts[-1].text) == (KEPT, KEPT)
    assert puts[0].validate is not None
    assert asked(step) == "runc"
    assert "docker: 2 containers with the runtime nvidia: web, job" in texts(plan)
    assert plan.by_hand == ("create anew or remove web, job; then gpunode undo",)
    assert plan.undo is not None
    assert plan.undo.pending


def test_they_are_waited_for_again_with_nothing_to_do_in_between() -> None:
    again = docker_file(KEPT)
    plan = made(docker_host(KEPT, default="runc"), docker_past(again), using())
    assert plan.steps == ()
    assert plan.by_hand == ("create anew or remove web; then gpunode undo",)


def test_once_they_are_gone_the_rest_goes_and_the_file_is_as_it_was() -> None:
    plan = made(docker_host(KEPT, default="runc"), docker_past(docker_file(KEPT)))
    (step,) = plan.steps
    put = step.actions[0]
    assert isinstance(put, PutFile)
    assert put.text == OLD
    assert plan.by_hand == ()
    assert plan.undo is not None
    assert not plan.undo.pending


def test_where_their_loss_is_allowed_they_are_named_and_all_goes() -> None:
    plan = made(docker_host(), docker_past(docker_file()), using(), allow_loss=True)
    put = plan.steps[0].actions[0]
    assert isinstance(put, PutFile)
    assert put.text == OLD
    assert plan.undo is not None
    assert [lost.text for lost in plan.undo.lost] == [
        "docker: 1 container with the runtime nvidia "
        "cannot be started, restarted or stopped by the engine any more: web"
    ]
    assert plan.by_hand == ()


def test_a_handler_that_was_there_before_setup_needs_nobody_to_wait_for_the_file() -> None:
    """The old bytes have it, too."""
    plan = made(docker_host(), docker_past(docker_file(before=KEPT)), using())
    put = plan.steps[0].actions[0]
    assert isinstance(put, PutFile)
    assert put.text == KEPT
    assert "restored" in plan.steps[0].title


def containerd_past(drop_in: str | None, main: str, **more: Any) -> Past:
    files = (
        past_file(DROP_IN, "containerd.default", before=None, left=WRITTEN, now=drop_in, directories=1),
        past_file(CONTAINERD, "containerd.default", before="version = 3\n", left=IMPORTING, now=main),
    )
    return Past(True, ("r1.1",), files, ("containerd",), {"containerd": "runc"}, **more)


TABLE = "[plugins.'io.containerd.cri.v1.runtime'.containerd"
HANDLER = f"{TABLE}.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n"
WRITTEN = f"version = 3\n{TABLE}]\ndefault_runtime_name = 'nvidia'\n{HANDLER}"
IMPORTING = "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"


def containerd_host(drop_in: str | None, main: str, default: str = "nvidia") -> HostFacts:
    engine = engine_facts("containerd", "2.1.9", effective_default=default, imports=(DROP_IN,))
    return host_with(engine, files={CONTAINERD: main, DROP_IN: drop_in})


def test_a_drop_in_keeps_the_handler_and_its_import() -> None:
    pod = using(engine="containerd", name="default/train")
    plan = made(containerd_host(WRITTEN, IMPORTING), containerd_past(WRITTEN, IMPORTING), pod)
    (step,) = plan.steps
    (put,) = [action for action in step.actions if isinstance(action, PutFile)]
    assert put.path == DROP_IN
    assert "default_runtime_name" not in put.text
    assert HANDLER in put.text
    assert not any(isinstance(action, RemoveFile) for action in step.actions)

    again = made(containerd_host(put.text, IMPORTING, "runc"), containerd_past(put.text, IMPORTING), pod)
    assert again.steps == ()


@pytest.mark.parametrize(
    "main", [IMPORTING, IMPORTING.replace("*", "99-nvidia") + "# mine\n"], ids=["as left", "others wrote to it"]
)
def test_the_drop_in_goes_with_its_import_once_they_are_gone(main: str) -> None:
    now = WRITTEN.replace("default_runtime_name = 'nvidia'\n", "")
    (step,) = made(containerd_host(now, main, "runc"), containerd_past(now, main)).steps
    assert any(isinstance(action, RemoveFile) and action.path == DROP_IN for action in step.actions)
    (put,) = [action for action in step.actions if isinstance(action, PutFile)]
    assert "imports" not in put.text


def test_another_engines_containers_do_not_keep_this_ones_handler() -> None:
    plan = made(docker_host(), docker_past(docker_file()), using("program", "", "default/plain"))
    put = plan.steps[0].actions[0]
    assert isinstance(put, PutFile)
    assert put.text == OLD
    assert "1 container running by nvidia-container-runtime: default/plain" in " ".join(texts(plan))


def test_a_pod_with_a_cdi_device_keeps_cdi_in_containerd_and_nothing_in_docker() -> None:
    """containerd lists no CDI devices: the pod is known by its shim, whichever containerd's it is."""
    pod = using("cdi", "", "default/train")
    assert [needs_handler((pod,), label) for label in ("containerd", "containerd@gpu.default", "docker")] == [1, 1, 0]


@pytest.mark.parametrize("need", ["handler", "cdi", "gpus", "program"])
def test_packages_and_what_a_tool_wrote_wait_for_every_kind_of_need(need: Need) -> None:
    cdi = "/etc/cdi/nvidia.yaml"
    host, past = installed(docker_host(KEPT, default="runc")), installed_past(docker_file(KEPT), wrote=(cdi,))
    host = replace(host, files={**host.files, **host_with(files={cdi: "x"}).files})
    plan = made(host, past, using(need), packages=True)
    assert not [step.id for step in plan.steps if step.id != "undo.docker.default"]
    assert plan.by_hand == ("create anew or remove web; then gpunode undo --packages",)


def installed(host: HostFacts, *names: str) -> HostFacts:
    packages = {name: PackageVersion("1") for name in (TOOLKIT, *names)}
    return replace(host, packages=PackageFacts("apt", packages))


def installed_past(*files: Any, **more: Any) -> Past:
    return docker_past(*files, packages={TOOLKIT: None}, inventory="/inventory", **more)


def undone(**more: Any) -> Past:
    """An earlier undo restored the configuration, or counts as if it had: engines and files are no longer in it."""
    return Past(True, ("r1.1",), packages={TOOLKIT: None}, inventory="/inventory", **more)


def test_without_anything_left_to_undo_containers_keep_nothing() -> None:
    plan = made(docker_host(OLD, default="runc"), docker_past(docker_file(OLD)), using())
    assert (plan.steps, plan.by_hand) == ((), ())


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (docker_host(OURS), f"{DOCKER}:8 makes nvidia the default runtime of docker"),
        (docker_host(OLD), "docker still runs with nvidia as its default runtime"),
        (docker_host(KEPT, default="runc"), f"{DOCKER}:5 names nvidia-container-runtime to docker"),
        (docker_host("{ broken" + OURS, default="runc"), f"{DOCKER}:5 names nvidia-container-runtime to docker"),
    ],
    ids=["its file", "the running daemon", "a handler that is not the default", "a file that nobody can read"],
)
def test_the_toolkit_is_not_removed_from_under_an_engine_that_names_it(host: HostFacts, why: str) -> None:
    plan = made(installed(host), undone(), packages=True)
    assert plan.steps == ()
    assert plan.by_hand == (f"change that ({why}); then gpunode undo --packages",)
    assert plan.undo is not None
    assert plan.undo.pending


def test_an_engine_that_does_not_run_is_read_as_well() -> None:
    host = docker_host(OURS)
    down = replace(host, runtimes=(replace(host.runtimes[0], active=False, effective_default=None),))
    assert made(installed(down), undone(), packages=True).steps == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [(OLD, (TOOLKIT,)), (OURS, ("nvidia-open",))],
    ids=["no engine names it", "the toolkit is not among the packages"],
)
def test_packages_that_no_engine_needs_go(text: str, names: tuple[str, ...]) -> None:
    host = installed(docker_host(text, default="runc"), *names)
    past = replace(undone(), packages=dict.fromkeys(names))
    assert [step.id for step in made(host, past, packages=True).steps] == ["undo.packages"]


def test_a_file_that_becomes_as_it_was_is_no_reason_to_keep_the_toolkit() -> None:
    plan = made(installed(docker_host()), installed_past(docker_file()), packages=True)
    assert [step.id for step in plan.steps] == ["undo.docker.default", "undo.packages"]


def test_every_engine_of_the_host_is_asked_and_nobody_where_there_is_nothing_to_undo() -> None:
    names = ("docker", "containerd", "crio", "k3s", "rke2", "k0s", "microk8s", "podman")
    host = host_with(*(engine_facts(name, None) for name in names), files={})
    found = dict(questions(host, Past(True, ("r1",))))
    assert list(found) == [*names, ""]
    assert [run.argv[3] for run in found.values()] == ["docker", *["cri"] * 6, "podman", "processes"]
    assert all(run.read_only for run in found.values())
    assert questions(host, Past(True)) == ()


def test_a_containers_name_is_quoted_in_what_is_to_be_typed() -> None:
    plan = made(docker_host(), docker_past(docker_file()), using(name="x; rm -rf /"))
    assert plan.by_hand == ("create anew or remove 'x; rm -rf /'; then gpunode undo",)


def test_many_are_counted() -> None:
    many = [using(name=f"c{number}") for number in range(30)]
    plan = made(docker_host(), docker_past(docker_file()), *many)
    assert texts(plan)[0].endswith("c6, c7 and 22 more")
    assert plan.by_hand == ("create anew or remove the 30 containers that are named above; then gpunode undo",)
