"""Which engines get a step, what it holds, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.apply.journal.snapshot import before_values
from gpunode.engines.containerd.engine import Containerd
from gpunode.errors import ConfigFileError, UnsupportedHost, UsageError
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, RuntimeFacts, ServiceFacts
from gpunode.model.kubernetes import KubeletSettings, NodeFacts
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines.hosts import PATHS, engine_facts, file_facts, host_with
from tests.planner.engines.kubelets import ASKED_AS, node

DOCKER_RIGHT = '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "nvidia"}\n'
DOCKER_NAMED = DOCKER_RIGHT.replace(', "default-runtime": "nvidia"', "")
NVIDIA: dict[str, Any] = {
    "effective_default": "nvidia",
    "handlers": ("nvidia", "runc"),
    "effective_source": "docker /info",
}


def docker_host(text: str | None, version: str = "26.1.5", init: str = "systemd", **observed: object) -> HostFacts:
    facts = engine_facts("docker", version, init=init, **observed)
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
    look, put, reload, verify = step.actions
    assert step.id == "docker.default"
    assert step.title == (
        "/etc/docker/daemon.json: + runtimes.nvidia, default-runtime runc → nvidia; reload, no container restarts"
    )
    assert isinstance(look, Run)
    assert look.argv[-1] == "/usr/bin/nvidia-container-runtime"
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


def test_a_handler_called_as_a_runtime_of_the_engines_own_is_refused_before_anything_is_planned() -> None:
    with pytest.raises(UsageError, match="'runc' is a runtime that docker has by itself"):
        runtime_steps(docker_host("{}"), Spec(runtime=RuntimeSpec(handler="runc")))


def test_a_new_file_must_still_be_absent_when_it_is_written() -> None:
    put = only_step(docker_host(None)).actions[1]
    assert isinstance(put, PutFile)
    assert put.expect_sha256 is None


def test_containerd_is_restarted_and_asked() -> None:
    facts = engine_facts("containerd", "2.1.9")
    step = only_step(host_with(facts, files={PATHS["containerd"]: "version = 3\n"}))
    assert step.title == (
        "/etc/containerd/conf.d/99-nvidia.toml and /etc/containerd/config.toml: "
        "+ handler nvidia, default runc → nvidia, "
        "imports + /etc/containerd/conf.d/*.toml; restart, pods keep running"
    )
    assert [a.description for a in step.actions[1:] if isinstance(a, Run)] == [
        "systemctl restart containerd.service",
        "ask the running containerd for its default runtime",
    ]


def test_the_kubelet_of_a_node_that_was_ready_is_asked_after_its_engine() -> None:
    """Longer than after a change of its own files, and after the rollback too: it finds out by and by."""
    alone = host_with(engine_facts("containerd", "2.1.9"), files={PATHS["containerd"]: "version = 3\n"})
    ready = node("1.30.4", {}, runs=True)
    step = only_step(replace(alone, kubernetes=ready.kubernetes, services=ready.services))
    for actions in (step.actions, step.undo):
        last = actions[-1]
        assert isinstance(last, Run)
        assert last.argv[3:8] == ("kubelet.service", "90", "10248", *ASKED_AS)
        assert last.stdin.startswith("gpunode_enough=12\n")
    for other in (
        node("1.30.4", {}),  # down: nothing was well before
        replace(ready, kubernetes=replace(ready.kubernetes, node=NodeFacts({"Ready": "False KubeletNotReady"}))),
        replace(ready, kubernetes=replace(ready.kubernetes, node=None)),
        replace(ready, services={}),  # it is no unit's
    ):
        step = only_step(replace(alone, kubernetes=other.kubernetes, services=other.services))
        assert [action for action in step.actions if isinstance(action, Run) and "kubelet.service" in action.argv] == []


def test_the_diffs_of_two_files_stand_below_each_other() -> None:
    facts = engine_facts("containerd", "2.1.9")
    lines = only_step(host_with(facts, files={PATHS["containerd"]: "version = 3\n"})).diff.splitlines()
    assert [line for line in lines if line.startswith("+++")] == [
        "+++ /etc/containerd/conf.d/99-nvidia.toml",
        f"+++ {PATHS['containerd']}",
    ]
    assert not any("---" in line[3:] for line in lines)


def test_a_right_file_that_the_daemon_has_not_read_is_applied_and_not_written() -> None:
    step = only_step(docker_host(DOCKER_RIGHT))
    assert not any(isinstance(a, PutFile) for a in step.actions)
    assert len(step.actions) == 2
    assert "matches the spec, but the running daemon still runs with runc" in step.title


@pytest.mark.parametrize(
    ("host", "spec", "said"),
    [
        (docker_host(DOCKER_RIGHT, **NVIDIA), Spec(), "docker runs with nvidia as its default runtime (docker /info)"),
        (
            docker_host(DOCKER_NAMED, **{**NVIDIA, "effective_default": "runc"}),
            Spec(runtime=RuntimeSpec(default=False)),
            "docker has the runtime nvidia (docker /info)",
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


DOCKERS_OWN = engine_facts("containerd", "1.7.27", effective_default=None, handlers=(), cri_error="CRI is off")


def pods_of(*others: RuntimeFacts, **kubernetes: Any) -> HostFacts:
    host = host_with(
        DOCKERS_OWN, *others, files={PATHS["containerd"]: 'disabled_plugins = ["cri"]\n'}, kubelet="systemd"
    )
    return replace(host, kubernetes=replace(host.kubernetes, kubelet=True, **kubernetes))


K3S = replace(engine_facts("containerd", "2.1.4", **NVIDIA), name="k3s", embedded_in="1.34.1+k3s1")
CRIO = replace(engine_facts("containerd", "1.34.0", **NVIDIA), name="crio")


def asking(socket: str, *others: RuntimeFacts) -> HostFacts:
    return pods_of(*others, version="1.34.2", settings=KubeletSettings(endpoint=socket))


DOCKERSHIM = {"version": "1.20.15", "settings": KubeletSettings()}


@pytest.mark.parametrize(
    ("host", "left"),
    [
        (pods_of(K3S), True),
        (pods_of(CRIO), True),
        (pods_of(engine_facts("docker", "20.10.21", **NVIDIA), **DOCKERSHIM), True),
        (pods_of(replace(CRIO, active=False)), False),
        (pods_of(), False),
        (asking("unix:///run/cri-dockerd.sock"), True),
        (asking("unix:///var/run/containerd/containerd.sock"), False),
        (asking("/run/containerd/containerd.sock", CRIO), False),
    ],
    ids=[
        *("k3s", "CRI-O", "dockershim", "a CRI-O that is off", "nothing else could run pods"),
        *("cri-dockerd", "the kubelet asks it", "the kubelet asks it, beside CRI-O"),
    ],
)
def test_dockers_own_containerd_is_left_alone_where_pods_are_anothers(host: HostFacts, left: bool) -> None:
    """Its CRI is off on purpose, and a restart of it is one under every container of docker's."""
    containerd = next(one for one in host.runtimes if one.name == "containerd")
    assert (Containerd().idle(host, containerd) is not None) is left


def test_no_engine_is_touched_where_none_is_wanted() -> None:
    assert runtime_steps(docker_host(None), Spec(runtimes=())) == ((), ())


def test_an_engine_that_was_named_and_is_absent_is_an_error_that_lists_what_is_there() -> None:
    with pytest.raises(UnsupportedHost, match="containerd is not installed on node7") as refused:
        runtime_steps(docker_host(None), Spec(runtimes=("containerd",)))
    assert refused.value.evidence == "container engines found: docker"


@pytest.mark.parametrize(
    "host",
    [
        docker_host("{}", active=False),
        docker_host("{}", init="none", active=False),
        docker_host("{}", init="chroot"),
    ],
    ids=["the unit is stopped", "an image without init", "a chroot, where any daemon is the outer machine's"],
)
def test_a_daemon_that_does_not_run_is_not_started(host: HostFacts) -> None:
    step = only_step(host)
    assert [type(a) for a in step.actions] == [PutFile]
    assert (step.undo, step.by_hand) == ((), "")
    assert "written only: " in step.title


@pytest.mark.parametrize("init", ["none", "openrc", "sysv"])
def test_without_systemd_docker_hears_by_a_signal(init: str) -> None:
    step = only_step(docker_host("{}", init=init, flags=("--pidfile", "/run/d.pid")))
    _, put, hangup, verify = step.actions
    assert isinstance(put, PutFile)
    assert isinstance(hangup, Run)
    assert (hangup.argv, hangup.description) == (("sh", "-s", "--", "/run/d.pid", "dockerd"), "SIGHUP to dockerd")
    assert isinstance(verify, Run)
    assert "systemctl reload" not in str(step.undo)
    assert step.by_hand == ""


@pytest.mark.parametrize(
    ("init", "scripts", "restarted"),
    [
        ("openrc", ("containerd",), True),
        ("sysv", ("containerd",), True),
        ("sysv", ("docker",), False),
        ("none", (), False),
    ],
)
def test_without_systemd_containerd_is_restarted_only_where_something_starts_it_again(
    init: str, scripts: tuple[str, ...], restarted: bool
) -> None:
    facts = engine_facts(
        "containerd", "1.7.24", init=init, pid=812, binary="/opt/bin/containerd", flags=("--config", "/c d")
    )
    host = replace(host_with(facts, files={PATHS["containerd"]: "version = 2\n"}, init=init), init_scripts=scripts)
    step = only_step(host)
    put = next(action for action in step.actions if isinstance(action, PutFile))
    assert put.validate is not None
    assert (step.actions[-1] is not put) == restarted
    assert bool(step.by_hand) != restarted
    if not restarted:
        assert "kill 812; /opt/bin/containerd --config '/c d' &" in step.by_hand
        assert "nothing here restarts containerd" in step.title


def test_the_containerd_of_k3s_is_not_to_be_started_by_itself() -> None:
    facts = replace(engine_facts("containerd", "2.1.4", init="none", pid=900), name="k3s", unit="k3s.service")
    step = only_step(host_with(facts, files={}, init="none"))
    assert step.by_hand == (
        "k3s must be stopped and started again by whoever started it   then gpunode setup again, which asks it"
    )


def test_a_right_file_that_only_a_person_can_bring_into_force_is_kept_with_the_commands_to_run() -> None:
    host = docker_host(DOCKER_RIGHT.replace("{\"runtimes", "{\"features\": {\"cdi\": true}, \"runtimes"), init="none",
                       live_restore=True, cdi=False, **NVIDIA)  # fmt: skip
    kept = only_kept(host, Spec(runtime=RuntimeSpec(cdi=True)))
    assert "stop docker; docker &" in kept.by_hand


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (RuntimeSpec(), "without naming a runtime"),
        (RuntimeSpec(default=False), "that name the runtime nvidia get GPUs"),
        (RuntimeSpec(default=False, cdi=True), "ask for a CDI device (nvidia.com/gpu=0), and to those that name"),
    ],
    ids=["default", "handler only", "handler and CDI"],
)
def test_the_plan_says_who_gets_gpus(spec: RuntimeSpec, said: str) -> None:
    assert said in only_step(docker_host("{}"), Spec(runtime=spec)).why


@pytest.mark.parametrize(
    ("containers", "restarts"), [(0, True), (3, False)], ids=["no container runs", "containers would stop"]
)
def test_cdi_that_is_in_the_file_and_not_in_the_daemon_needs_a_restart(containers: int, restarts: bool) -> None:
    text = DOCKER_RIGHT.replace('{"runtimes', '{"features": {"cdi": true}, "runtimes')
    host = docker_host(text, cdi=False, live_restore=False, containers_running=containers, **NVIDIA)
    spec = Spec(runtime=RuntimeSpec(cdi=True))
    if restarts:
        restart = next(a for a in only_step(host, spec).actions if isinstance(a, Run))
        assert restart.description == "systemctl restart docker.service"
    else:
        assert "--allow-container-restart" in only_kept(host, spec).by_hand


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
    step = only_step(docker_host('{"live-restore": true}', **observed), replace(spec, runtime=RuntimeSpec(cdi=True)))
    says = [a.description for a in step.actions if isinstance(a, Run)]
    assert ("systemctl restart docker.service" in says) is restarts
    assert ("--allow-container-restart" in step.by_hand) is not restarts


def test_a_drop_in_is_not_validated_as_if_it_were_the_whole_file() -> None:
    drop_in = "/etc/containerd/conf.d/99-nvidia.toml"
    facts: RuntimeFacts = engine_facts("containerd", "2.1.9", imports=(drop_in,))
    text = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'runc'\n"
    host = host_with(facts, files={PATHS["containerd"]: "version = 3\n", drop_in: text})
    puts = [action for action in only_step(host).actions if isinstance(action, PutFile)]
    validators = {put.path: put.validate.argv[-3:] for put in puts if put.validate is not None}
    root = PATHS["containerd"]
    assert validators == {drop_in: (root, drop_in, "{candidate}"), root: (root, root, "{candidate}")}


def test_secrets_do_not_reach_the_diff() -> None:
    step = only_step(docker_host('{\n  "http-proxy": "http://u:hunter2@proxy.example"\n}\n'))
    assert "hunter2" not in step.diff


def test_a_cri_that_was_dead_before_is_said() -> None:
    facts = engine_facts("containerd", "1.7.24", effective_default=None, cri_error="invalid plugin config")
    step = only_step(host_with(facts, files={PATHS["containerd"]: "version = 2\n"}))
    assert "before this step its CRI did not answer: invalid plugin config" in step.why


@pytest.mark.parametrize(
    ("service", "title"),
    [
        (ServiceFacts("loaded", "failed", "failed"), "start, since docker.service has failed"),
        (ServiceFacts("loaded", "activating", "auto-restart"), "start, since docker.service has failed"),
        (ServiceFacts("loaded", "inactive", "dead"), "written only: docker.service is not running"),
    ],
    ids=["given up", "tried again and again", "stopped by somebody"],
)
def test_a_daemon_that_could_not_start_is_started_with_the_new_file(service: ServiceFacts, title: str) -> None:
    """Its old file made it fail, or nothing: with that file back there is nothing to start again."""
    host = replace(docker_host("{}", active=False, effective_default=None), services={"docker.service": service})
    step = only_step(host)
    assert step.title.endswith(title)
    assert step.undo == ()
    says = [action.description for action in step.actions if isinstance(action, Run)]
    starts = title.startswith("start")
    assert ("systemctl restart docker.service" in says) == starts
    assert ("ask the running docker for its default runtime" in says) == starts


def test_a_right_file_does_not_start_what_has_failed() -> None:
    service = ServiceFacts("loaded", "failed", "failed")
    host = replace(docker_host(DOCKER_RIGHT, active=False), services={"docker.service": service})
    assert only_kept(host).text == "/etc/docker/daemon.json matches the spec; docker.service is not running"


def test_a_rootless_docker_is_configured_only_when_named() -> None:
    host = docker_host("{}", user="alice", owner="1000:100")
    assert "only on request: --runtime docker@alice" in only_kept(host).text
    assert only_step(host, Spec(runtimes=("docker",))).id == "docker@alice.default"


def two_containerds() -> HostFacts:
    other = "/etc/containerd-gpu/config.toml"
    first = engine_facts("containerd", "1.7.24")
    second = replace(first, config_path=other, unit="containerd-gpu.service", socket="/run/containerd-gpu/c.sock")
    return host_with(first, second, files={PATHS["containerd"]: "version = 2\n", other: "version = 2\n"})


def test_two_containerds_are_told_apart_and_each_is_asked_on_its_own_socket() -> None:
    steps, _ = runtime_steps(two_containerds(), Spec())
    found = {s.id: [a.argv[4] for a in s.actions if isinstance(a, Run) and "gpunode_verify" in a.stdin] for s in steps}
    assert found == {
        "containerd.default": ["/run/containerd/containerd.sock"],
        "containerd@containerd-gpu.default": ["/run/containerd-gpu/c.sock"],
    }


def test_the_journal_keeps_the_default_of_each_of_two_containerds() -> None:
    host = two_containerds()
    first, second = host.runtimes
    host = replace(host, runtimes=(first, replace(second, effective_default="crun")))
    plan = Plan("node7", Spec(), "")
    assert before_values(host, plan)["default_runtimes"] == {"containerd": "runc", "containerd@containerd-gpu": "crun"}


CDI = Spec(runtime=RuntimeSpec(cdi=True))
OLD_CONTAINERD = "containerd 1.6.20 has no CDI"


def old_and_new() -> HostFacts:
    old = engine_facts("containerd", "1.6.20")
    new = engine_facts("docker", "26.1.5", live_restore=True)
    return host_with(old, new, files={PATHS["containerd"]: "version = 2\n", PATHS["docker"]: "{}"})


def test_an_engine_too_old_for_cdi_is_kept_while_another_one_has_it() -> None:
    steps, (kept,) = runtime_steps(old_and_new(), CDI)
    assert [step.id for step in steps] == ["docker.default"]
    assert kept == Kept("containerd.default", f"{OLD_CONTAINERD}, so --cdi does not change it")


def test_an_engine_too_old_for_cdi_that_was_named_is_refused_and_the_other_is_done() -> None:
    steps, (kept,) = runtime_steps(old_and_new(), replace(CDI, runtimes=("containerd", "docker")))
    assert [step.id for step in steps] == ["docker.default"]
    assert (kept.refused, kept.text) == (True, OLD_CONTAINERD)


def test_where_no_engine_has_cdi_it_is_refused() -> None:
    host = replace(old_and_new(), runtimes=old_and_new().runtimes[:1])
    assert only_kept(host, CDI).refused
    with pytest.raises(UnsupportedHost, match=OLD_CONTAINERD):
        runtime_steps(host, replace(CDI, only=("runtime",)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [("version = 2\n[plugins\n", "/etc/containerd/config.toml:2:9"), ("version = 3\n", "has version = 3")],
    ids=["a file that does not parse", "a file of another daemon's"],
)
def test_a_refused_engine_does_not_keep_another_from_its_runtime(text: str, problem: str) -> None:
    host = old_and_new()
    host = replace(host, files={**host.files, PATHS["containerd"]: file_facts(PATHS["containerd"], text)})
    for only in (Spec().only, ("runtime",)):
        steps, (kept,) = runtime_steps(host, replace(Spec(), only=only))
        assert [step.id for step in steps] == ["docker.default"]
        assert (kept.id, kept.refused) == ("containerd.default", True)
        assert problem in kept.text
        assert kept.evidence
        assert kept.remedy
    alone = replace(host, runtimes=host.runtimes[:1])
    with pytest.raises((UnsupportedHost, ConfigFileError), match=PATHS["containerd"]):
        runtime_steps(alone, replace(Spec(), only=("runtime",)))
