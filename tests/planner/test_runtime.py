"""Which engines get a step, what it holds, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import Kept, PutFile, Run, Step
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.runtime import runtime_steps
from tests.runtimes.hosts import PATHS, engine_facts, host_with

DOCKER_RIGHT = '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "nvidia"}\n'
NVIDIA: dict[str, Any] = {
    "effective_default": "nvidia",
    "handlers": ("nvidia", "runc"),
    "effective_source": "docker /info",
}


def docker_host(text: str | None, version: str = "26.1.5", init: str = "systemd", **observed: object) -> HostFacts:
    facts = engine_facts("docker", version, **observed)
    return host_with(facts, files={PATHS["docker"]: text}, init=init)


def only_step(host: HostFacts, spec: Spec = Spec()) -> Step:  # noqa: B008  # frozen
    (step,), kept = runtime_steps(host, spec)
    assert kept == ()
    return step


def only_kept(host: HostFacts, spec: Spec = Spec()) -> Kept:  # noqa: B008  # frozen
    steps, (kept,) = runtime_steps(host, spec)
    assert steps == ()
    return kept


def test_docker_is_written_validated_reloaded_and_asked() -> None:
    host = docker_host('{\n    "debug": true\n}\n')
    step = only_step(host)
    put, reload, verify = step.actions
    assert step.id == "docker.default"
    assert step.title == (
        "/etc/docker/daemon.json: + runtimes.nvidia, default-runtime runc → nvidia; reload, no container restarts"
    )
    assert isinstance(put, PutFile)
    assert put.expect_sha256 == host.file(PATHS["docker"]).sha256
    assert put.validate is not None
    assert "{candidate}" in put.validate.argv
    assert isinstance(reload, Run)
    assert reload.argv == ("systemctl", "reload", "docker.service")
    assert isinstance(verify, Run)
    assert verify.argv[3:7] == ("docker", "/run/docker.sock", "nvidia", "docker.service")
    assert '+    "default-runtime": "nvidia"' in step.diff
    assert step.undo


def test_a_new_file_must_still_be_absent_when_it_is_written() -> None:
    put = only_step(docker_host(None)).actions[0]
    assert isinstance(put, PutFile)
    assert put.expect_sha256 is None


def test_containerd_is_restarted_and_asked() -> None:
    facts = engine_facts("containerd", "2.1.9")
    step = only_step(host_with(facts, files={PATHS["containerd"]: "version = 3\n"}))
    assert step.title == (
        "/etc/containerd/config.toml: + handler nvidia, default runc → nvidia; restart, pods keep running"
    )
    assert [a.says for a in step.actions[1:] if isinstance(a, Run)] == [
        "systemctl restart containerd.service",
        "ask the running containerd for its default runtime",
    ]


def test_a_right_file_that_the_daemon_has_not_read_is_applied_and_not_written() -> None:
    step = only_step(docker_host(DOCKER_RIGHT))
    assert not any(isinstance(a, PutFile) for a in step.actions)
    assert len(step.actions) == 2
    assert "is right, but the running daemon still runs with runc" in step.title


@pytest.mark.parametrize(
    ("host", "spec", "said"),
    [
        (docker_host(DOCKER_RIGHT, **NVIDIA), Spec(), "docker runs with nvidia as its default runtime (docker /info)"),
        (
            docker_host(DOCKER_RIGHT, **{**NVIDIA, "effective_default": "runc"}),
            Spec(runtime=RuntimeSpec(default=False)),
            "docker knows the runtime nvidia (docker /info)",
        ),
        (docker_host(DOCKER_RIGHT, active=False), Spec(), "docker.service is not running"),
        (host_with(files={}), Spec(), "no container engine was found"),
        (
            host_with(
                engine_facts("containerd", "1.7.24"), files={PATHS["containerd"]: 'disabled_plugins = ["cri"]\n'}
            ),
            Spec(),
            "switches CRI off",
        ),
    ],
    ids=["file and daemon are right", "known is enough without default", "right and stopped", "none", "only docker's"],
)
def test_what_is_right_is_kept_with_the_reason(host: HostFacts, spec: Spec, said: str) -> None:
    assert said in only_kept(host, spec).text


def test_containerd_that_serves_docker_only_is_configured_when_it_is_named() -> None:
    host = host_with(engine_facts("containerd", "1.7.24"), files={PATHS["containerd"]: 'disabled_plugins = ["cri"]\n'})
    assert "CRI switched on" in only_step(host, Spec(runtimes=("containerd",))).title


def test_no_engine_is_touched_where_none_is_wanted() -> None:
    assert runtime_steps(docker_host(None), Spec(runtimes=())) == ((), ())


def test_an_engine_that_was_named_and_is_absent_is_an_error_that_lists_what_is_there() -> None:
    with pytest.raises(UnsupportedHost, match="containerd is not installed on node7") as refused:
        runtime_steps(docker_host(None), Spec(runtimes=("containerd",)))
    assert refused.value.evidence == "container engines found: docker"


@pytest.mark.parametrize(
    "host",
    [docker_host("{}", active=False), docker_host("{}", init="none")],
    ids=["the unit is stopped", "an image without init"],
)
def test_a_daemon_that_does_not_run_is_not_started(host: HostFacts) -> None:
    step = only_step(host)
    assert [type(a) for a in step.actions] == [PutFile]
    assert step.undo == ()
    assert "written only: docker.service is not running" in step.title


@pytest.mark.parametrize(
    ("observed", "spec", "restarts"),
    [
        ({"live_restore": True, "containers_running": 3}, Spec(), True),
        ({"live_restore": False, "containers_running": 0}, Spec(), True),
        ({"live_restore": False, "containers_running": 3}, Spec(), False),
        ({"live_restore": None, "containers_running": None}, Spec(), False),
        ({"live_restore": False, "containers_running": 3}, Spec(allow_container_restart=True), True),
    ],
    ids=["live-restore", "nothing runs", "containers run", "not known", "allowed"],
)
def test_docker_is_restarted_for_cdi_only_where_no_container_dies(
    observed: dict[str, Any], spec: Spec, restarts: bool
) -> None:
    step = only_step(docker_host("{}", **observed), replace(spec, runtime=RuntimeSpec(cdi=True)))
    says = [a.says for a in step.actions if isinstance(a, Run)]
    assert ("systemctl restart docker.service" in says) is restarts
    assert ("--allow-container-restart" in step.why) is not restarts


def test_a_drop_in_is_not_validated_as_if_it_were_the_whole_file() -> None:
    drop_in = "/etc/containerd/conf.d/99-nvidia.toml"
    facts: RuntimeFacts = engine_facts("containerd", "2.1.9", imports=(drop_in,))
    text = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'runc'\n"
    put = only_step(host_with(facts, files={PATHS["containerd"]: "version = 3\n", drop_in: text})).actions[0]
    assert isinstance(put, PutFile)
    assert (put.path, put.validate) == (drop_in, None)


def test_secrets_do_not_reach_the_diff() -> None:
    step = only_step(docker_host('{\n  "http-proxy": "http://u:hunter2@proxy.example"\n}\n'))
    assert "hunter2" not in step.diff


def test_a_cri_that_was_dead_before_is_said() -> None:
    facts = engine_facts("containerd", "1.7.24", effective_default=None, cri_error="invalid plugin config")
    step = only_step(host_with(facts, files={PATHS["containerd"]: "version = 2\n"}))
    assert "before this step its CRI did not answer: invalid plugin config" in step.why
