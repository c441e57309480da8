"""A user's own docker: which one a name means, what it needs of the host, and what stays its user's to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts, RuntimeFacts, ServiceFacts
from gpunode.model.plan import Step
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec, Spec, ToolkitConfig
from gpunode.planner.engines.rootless import named, wanted_toolkit_config
from gpunode.planner.engines.steps import runtime_steps
from gpunode.planner.plan import make_plan
from gpunode.specfile import put
from tests.engines.hosts import PATHS, engine_facts, host_with

THEIRS = "/home/ann/.config/docker/daemon.json"
RIGHT = '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "nvidia"}'
ROOTED = engine_facts("docker", "26.1.5")
CONTAINERD = engine_facts("containerd", "1.7.24")


def docker_of(user: str, **observed: object) -> RuntimeFacts:
    facts = engine_facts("docker", "26.1.5", user=user, owner="1000:100", **observed)
    return replace(facts, config_path=f"/home/{user}/.config/docker/daemon.json")


ANN, BOB = docker_of("ann"), docker_of("bob")


def node(*engines: RuntimeFacts, cri: str = "version = 2\n", text: str | None = None) -> HostFacts:
    return host_with(*engines, files={PATHS["containerd"]: cri, THEIRS: text})


def wanted(*names: str, settings: ToolkitConfig = ToolkitConfig()) -> Spec:  # noqa: B008  # frozen
    return Spec(runtimes=names, only=("runtime",), toolkit_config=settings)


@pytest.mark.parametrize(
    ("engines", "name", "meant"),
    [
        ((ANN,), "docker", ["docker@ann"]),
        ((ANN, BOB), "docker@bob", ["docker@bob"]),
        ((ROOTED, ANN), "docker", ["docker"]),
        ((ROOTED, ANN), "docker@ann", ["docker@ann"]),
        ((ROOTED,), "docker@ann", []),
    ],
    ids=["the only docker", "by its user", "the host's goes first", "beside the host's", "of nobody"],
)
def test_a_name_means(engines: tuple[RuntimeFacts, ...], name: str, meant: list[str]) -> None:
    assert [engine.label for engine in named(node(*engines), name)] == meant


def test_docker_alone_does_not_say_which_of_two_users() -> None:
    with pytest.raises(UnsupportedHost, match="has 2 dockers, each a user's own") as refused:
        named(node(ANN, BOB), "docker")
    assert "--runtime docker@ann,docker@bob" in refused.value.remedy.text


@pytest.mark.parametrize("text", ["Docker@Ann", "docker@ann, containerd"], ids=["case of the user", "a list"])
def test_a_user_is_named_behind_an_at(text: str) -> None:
    assert put(Spec(), "runtime", text).runtimes in (("docker@Ann",), ("docker@ann", "containerd"))


@pytest.mark.parametrize("text", ["crio@ann", "docker@", "docker@a;b", "rootless"])
def test_no_other_word_is_a_user_of_docker(text: str) -> None:
    with pytest.raises(UsageError, match="is not a container runtime"):
        put(Spec(), "runtime", text)


@pytest.mark.parametrize(
    ("engines", "spec", "no_cgroups"),
    [
        ((ANN,), wanted("docker"), True),
        ((ANN, replace(ROOTED, active=False)), wanted("docker@ann"), True),
        ((ANN, ROOTED), wanted("docker"), None),
        ((ANN,), Spec(only=("runtime",)), None),
        ((ANN,), replace(wanted("docker@ann"), only=("toolkit",)), None),
        ((ANN, ROOTED), wanted("docker@ann", settings=ToolkitConfig(no_cgroups=True)), True),
        ((ANN, ROOTED), wanted("docker@ann", settings=ToolkitConfig(no_cgroups=False)), False),
    ],
    ids=[
        "named: set", "the host's docker is down: set", "the host's is named: left", "nobody is named: left",
        "engines are no part of it: left", "said to be meant: set", "said to be off: off",
    ],
)  # fmt: skip
def test_no_cgroups(engines: tuple[RuntimeFacts, ...], spec: Spec, no_cgroups: bool | None) -> None:
    assert wanted_toolkit_config(node(*engines), spec).no_cgroups is no_cgroups


def test_an_engine_that_runs_as_root_does_not_lose_its_gpus_unasked() -> None:
    with pytest.raises(
        UnsupportedHost, match="needs no-cgroups, and docker and containerd must not have it"
    ) as refused:
        wanted_toolkit_config(node(ANN, ROOTED, CONTAINERD), wanted("docker@ann"))
    assert "applies to the whole host" in refused.value.evidence
    only_dockers = node(ANN, CONTAINERD, cri='disabled_plugins = ["cri"]\n')
    assert wanted_toolkit_config(only_dockers, wanted("docker@ann")).no_cgroups is True


def test_the_plan_sets_the_hosts_setting_and_then_the_users_file() -> None:
    settings, step = make_plan(node(ANN, text="{}"), wanted("docker"), load_catalog()).steps
    assert (settings.id, step.id) == ("toolkit.config", "docker@ann.default")
    assert "rootless Docker cannot write device rules" in settings.why
    assert "applies to every engine of this host" in settings.why
    assert [(a.path, a.owner) for a in settings.actions if isinstance(a, PutFile)] == [(TOOLKIT_CONFIG, "")]
    assert [(a.path, a.owner) for a in step.actions if isinstance(a, PutFile)] == [(THEIRS, "1000:100")]
    assert step.by_hand == ""


def test_what_only_its_user_can_do_is_said_until_it_is_done() -> None:
    older = docker_of("ann", sees_toolkit=False)
    (step,), _ = runtime_steps(node(older, text="{}"), wanted("docker"))
    assert (
        "Until then images that ask for GPUs do not start in it. As ann: systemctl --user restart docker"
        in step.by_hand
    )
    done = replace(older, effective_default="nvidia", handlers=("nvidia", "runc"))
    _, (kept,) = runtime_steps(node(done, text=RIGHT), wanted("docker"))
    assert "As ann: systemctl --user restart docker" in kept.by_hand


def test_a_users_docker_is_not_restarted_for_cdi_nor_for_a_unit_of_the_hosts_that_failed() -> None:
    ann = replace(docker_of("ann", containers_running=0, cdi=False), version="28.0.1")  # which finds specifications
    host = node(ann, text="{}")
    host = replace(host, services={"docker.service": ServiceFacts("loaded", "failed", "failed")})
    spec = replace(wanted("docker"), runtime=RuntimeSpec(cdi=True))
    (step,), _ = runtime_steps(host, spec)
    assert isinstance(step, Step)
    assert "As ann: systemctl --user restart docker" in step.by_hand
    assert not any("restart" in getattr(a, "description", "") for a in step.actions)


def test_a_users_docker_that_is_silent_or_down_is_told_so() -> None:
    silent = node(docker_of("ann", active=False), text="{}")
    (step,), _ = runtime_steps(silent, wanted("docker"))
    assert step.title.endswith("written only: docker@ann did not answer on /run/docker.sock")
    with pytest.raises(UnsupportedHost, match="docker@bob is not running on node7") as refused:
        runtime_steps(silent, wanted("docker@bob"))
    assert "let bob start it (systemctl --user start docker)" in refused.value.remedy.text
