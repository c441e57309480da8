"""k3s and rke2: their own config before and after; refusals in words; neither was run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.engines.base import Removal
from gpunode.engines.kubernetes.k3s import K3s, default_runtime, removed
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines import rewritten, trees
from tests.engines.hosts import engine_facts

PAIRS = trees.pairs(Path(__file__).parent / "k3s")
MAIN = "/etc/rancher/k3s/config.yaml"
OURS = f"{MAIN}.d/99-gpunode.yaml"
TEMPLATES = "/var/lib/rancher/k3s/agent/etc/containerd"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_tree_before_and_after(pair: trees.Pair) -> None:
    rewritten.check(pair, "k3s")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_nvidia_takes_precedence_and_nobody_elses_file_changed(pair: trees.Pair) -> None:
    for path, text in pair.before.items():
        assert path.endswith("gpunode.yaml") or pair.after[path] == text
    if "want" not in pair.said:
        words = [(p.count(".d/"), p) for p in pair.after if p.endswith(".yaml") and default_runtime(p, pair.after[p])]
        assert default_runtime("", pair.after[max(words)[1]]) == "nvidia"


def test_there_are_pairs_enough() -> None:
    assert len(PAIRS) >= 15


def test_a_default_of_the_admins_is_unchanged_and_reported() -> None:
    result = rewritten.rewrite(
        engine_facts("k3s", "2.0.5", embedded_in="1.33.5+k3s1"), {MAIN: "default-runtime: crun\n"}
    )
    assert f"{MAIN} sets default-runtime: crun and is not changed" in result.notes[0]
    assert result.added == ("default-runtime crun → nvidia (over config.yaml, not changed)",)


def test_a_default_that_only_the_daemon_has_is_over_no_file() -> None:
    result = rewritten.rewrite(engine_facts("k3s", "2.0.5", embedded_in="1.33.5+k3s1"), {MAIN: "selinux: true\n"})
    assert result.added == ("default-runtime runc → nvidia",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("default-runtime: a\ndefault-runtime: b\n", "set more than once"),
        ("{default-runtime: crun, selinux: true}\n", "not a line of its own"),
        ("default-runtime+: crun\n", "not a line of its own"),
    ],
    ids=["twice", "flow style", "an appended value"],
)
def test_yaml_that_says_it_in_another_way_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        rewritten.rewrite(engine_facts("k3s", "2.0.5"), {MAIN: text})
    assert problem in refused.value.problem


@pytest.mark.parametrize(
    ("embedded_in", "fits"),
    [
        ("1.33.5+k3s1", True), ("1.29.0+k3s1", True), ("1.28.5+k3s1", True), ("1.28.4+k3s2", False),
        ("1.27.9+k3s1", True), ("1.27.8+k3s2", False), ("1.24.17+k3s1", False), (None, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["k3s", "rke2"])
def test_a_release_without_default_runtime_is_refused(name: str, embedded_in: str | None, fits: bool) -> None:
    facts = engine_facts(name, "1.7.11", embedded_in=embedded_in)
    if fits:
        assert rewritten.rewrite(facts, {}).changed
        return
    with pytest.raises(UnsupportedHost, match="too old") as refused:
        rewritten.rewrite(facts, {})
    assert "k3s-io/k3s#8936" in refused.value.evidence
    assert ("unverified" in refused.value.evidence) is (name == "rke2"), "nobody saw that rke2 has k3s' flag"


@pytest.mark.parametrize(
    ("name", "version", "text"),
    [
        ("config.toml.tmpl", "1.7.23", "version = 2\n[plugins]\n"),
        ("config-v3.toml.tmpl", "2.0.5", "version = 3\n"),
        ("config.toml.tmpl", "2.0.5", "version = 2\n"),
    ],
    ids=["1.7", "2.0 with its own", "2.0 with the old one, which forces version 2"],
)
def test_a_whole_template_is_refused_with_what_to_write(name: str, version: str, text: str) -> None:
    with pytest.raises(UnsupportedHost) as refused:
        rewritten.rewrite(engine_facts("k3s", version), {f"{TEMPLATES}/{name}": text})
    assert f"{TEMPLATES}/{name} is a whole template" in refused.value.problem
    assert '{{ template "base" . }}' in refused.value.remedy.text


def test_a_flag_in_the_unit_takes_precedence() -> None:
    flags = ("server", "--default-runtime", "crun")
    with pytest.raises(UnsupportedHost, match="takes precedence over every file"):
        rewritten.rewrite(engine_facts("k3s", "2.0.5", distribution_flags=flags), {})


@pytest.mark.parametrize(
    ("flags", "config", "where"),
    [
        (("server", "--config", "/etc/k3s/node.yaml"), "/etc/k3s/node.yaml", "/etc/k3s/node.yaml.d/99-gpunode.yaml"),
        (("--config=/etc/k3s/node.yaml", "agent"), "/etc/k3s/node.yaml", "/etc/k3s/node.yaml.d/99-gpunode.yaml"),
        (("server", "-c", "/etc/k3s/node.yaml"), "/etc/k3s/node.yaml", "/etc/k3s/node.yaml.d/99-gpunode.yaml"),
        (("server", "--config", "https://me:word@srv/k"), "URL", "what is there"),
    ],
)
def test_a_config_elsewhere_is_refused_with_what_to_write_where(
    flags: tuple[str, ...], config: str, where: str
) -> None:
    """k3s reads that file and its own FILE.d, and nothing of /etc/rancher/k3s."""
    engine = engine_facts("k3s", "2.0.5", distribution_flags=flags)
    with pytest.raises(UnsupportedHost) as refused:
        rewritten.rewrite(engine, {MAIN: "default-runtime: nvidia\n"})
    assert refused.value.problem.startswith(f"k3s.service starts k3s with --config {config}, and it reads nothing of ")
    assert refused.value.remedy.text.startswith("once nvidia-container-runtime is installed, write ")
    assert f" the line default-runtime: nvidia into {where}, systemctl restart " in refused.value.remedy.text
    assert not rewritten.rewrite(engine, {}, RuntimeSpec(default=False)).changed
    assert not rewritten.rewrite(replace(engine, effective_default="nvidia"), {}).changed, "somebody wrote it there"


def test_a_config_elsewhere_by_the_environment_is_refused_too() -> None:
    """Which counts more than the flag."""
    flags = ("server", "--config", MAIN)
    engine = engine_facts("rke2", "2.0.5", distribution_flags=flags, distribution_config="/srv/rke2.yaml")
    with pytest.raises(UnsupportedHost) as refused:
        rewritten.rewrite(engine, {})
    assert "starts rke2 with RKE2_CONFIG_FILE /srv/rke2.yaml, and" in refused.value.problem
    assert refused.value.evidence.endswith(": Environment")
    assert "into /srv/rke2.yaml.d/99-gpunode.yaml, " in refused.value.remedy.text


@pytest.mark.parametrize("flags", [("server", "--config", MAIN), ("server", "--config=/etc/rancher//k3s/config.yaml")])
def test_the_usual_config_may_be_named(flags: tuple[str, ...]) -> None:
    assert rewritten.rewrite(engine_facts("k3s", "2.0.5", distribution_flags=flags), {}).main.path == OURS


@pytest.mark.parametrize(
    "want",
    [RuntimeSpec(handler="gpu"), RuntimeSpec(path="/opt/gpu/runtime")],
    ids=["another handler", "another program"],
)
def test_k3s_names_its_handler_itself(want: RuntimeSpec) -> None:
    with pytest.raises(UnsupportedHost, match="names its handler nvidia itself"):
        rewritten.rewrite(engine_facts("k3s", "2.0.5"), {}, want)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("k3s", "k3s.service"),
        ("k3s", "k3s-agent.service"),
        ("rke2", "rke2-server.service"),
        ("rke2", "rke2-agent.service"),
    ],
)
def test_its_own_unit_is_restarted_and_its_containerd_asked(name: str, unit: str) -> None:
    facts = replace(engine_facts(name, "2.0.5", embedded_in="1.33.5"), unit=unit)
    (step,), _ = runtime_steps(rewritten.host_of(facts, {}), Spec())
    _, put, restart, verify = step.actions
    assert step.title == (
        f"/etc/rancher/{name}/config.yaml.d/99-gpunode.yaml: default-runtime runc → nvidia; restart, pods keep running"
    )
    assert isinstance(put, PutFile)
    assert isinstance(restart, Run)
    assert restart.description == f"systemctl restart {unit}"
    assert isinstance(verify, Run)
    assert verify.argv[3:7] == (name, "/run/k3s/containerd/containerd.sock", "nvidia", unit)


def test_the_program_is_looked_for_before_it_becomes_the_default() -> None:
    assert rewritten.rewrite(engine_facts("k3s", "2.0.5"), {}).binaries == ("nvidia-container-runtime",)
    assert rewritten.rewrite(engine_facts("k3s", "2.0.5"), {MAIN: "default-runtime: nvidia\n"}).binaries == ()


@pytest.mark.parametrize(
    ("text", "previous", "left"),
    [
        ("default-runtime: nvidia\n", None, ""),
        ("a: 1\ndefault-runtime: nvidia # ours\nb: 2\n", None, "a: 1\nb: 2\n"),
        ("default-runtime: nvidia # ours\n", "crun", "default-runtime: crun # ours\n"),
        ("default-runtime: runc\n", "crun", "default-runtime: runc\n"),
        ("a: 1\r\ndefault-runtime: nvidia\r\n", None, "a: 1\r\n"),
    ],
    ids=["all of it", "other keys are kept", "the default before", "a default chosen since", "DOS line ends"],
)
def test_removed(text: str, previous: str | None, left: str) -> None:
    assert removed(text, "nvidia", previous) == left


@pytest.mark.parametrize(
    ("before", "left"),
    [("", ""), ("default-runtime: crun\n", "# Written by gpunode\ndefault-runtime: crun\n")],
    ids=["gpunode's file goes, comment and all", "an older default is restored"],
)
def test_undo_takes_out_what_gpunode_put_in(before: str, left: str) -> None:
    now = "# Written by gpunode\ndefault-runtime: nvidia\n"
    assert K3s().without(OURS, now, Removal("nvidia", "runc", before)) == left
