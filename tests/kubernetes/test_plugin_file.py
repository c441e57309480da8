"""The plugin's config file, strictly: every fault with its line, and hostile files without a traceback."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_forms import check_form, form_notes, printed
from gpunode.kubernetes.plugin_pods import Cluster
from gpunode.kubernetes.plugin_request import plugin_of
from tests.kubernetes.plugins import MPS, NEWEST, OPTIONS, RELEASES, SLICED, from_config, plugin

BY_TAG = {one.tag: one for one in RELEASES}


def sliced(resource: str) -> str:
    return f"sharing: {{timeSlicing: {{resources: [{resource}]}}}}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "flags:\n  migStrateg: none\n",
            "line 2: flags.migStrateg: no key of the plugin's. did you mean flags.migStrategy?",
        ),
        ("flags:\n  migstrategy: none\n", "did you mean flags.migStrategy?"),
        ("migStrategy: none", "no key of the plugin's. did you mean flags.migStrategy?"),
        ("flags: {plugin: {passDeviceSpecs: 'true'}}", "true or false is wanted"),
        ("flags: {plugin: {passDeviceSpecs: yes}}", "neither true nor false"),
        ("flags: {plugin: {deviceIDStrategy: 1}}", "a text is wanted"),
        ("flags: {plugin: {deviceIDStrategy: [uuid]}}", "a list is not wanted"),
        ("flags: {plugin: {deviceListStrategy: cdi-cr}}", "did you mean cdi-cri?"),
        ("flags: {plugin: {deviceListStrategy: {a: b}}}", "a text is wanted"),
        ("flags: {nvidiaDriverRoot: run/x}", "not an absolute path"),
        ("flags: {nvidiaDriverRoot: '/a b'}", "not an absolute path"),
        ("flags: {nvidiaDriverRoot: /a/../b}", "without .."),
        ("flags: {mpsRoot: /run/..}", "without .."),
        ("flags: {plugin: {containerDriverRoot: '/a:b'}}", "not an absolute path"),
        ("flags: {plugin: {cdiAnnotationPrefix: ../x}}", "the beginning of an annotation's key"),
        ("flags: {plugin: {cdiAnnotationPrefix: ''}}", "the beginning of an annotation's key"),
        ("flags: {plugin: {cdiAnnotationPrefix: a/b/c}}", "the beginning of an annotation's key"),
        ("flags: {nvidiaDriverRoot: '/%n'}", "not an absolute path"),
        ('flags: {nvidiaDriverRoot: "/a\\nb"}', "not an absolute path"),
        ("flags: {gfd: {sleepInterval: 60}}", "a text is wanted"),
        ("flags: {gfd: {sleepInterval: fast}}", "not a duration"),
        ("flags: {gfd: x}", "a mapping is wanted"),
        ("flags: [a]", "a mapping is wanted"),
        ("flags: {migStrategy: none, migStrategy: mixed}", "stands twice"),
        ("version: v2", "knows v1 alone"),
        ("imex: {channelIDs: 0}", "a list of whole numbers"),
        ("imex: {channelIDs: ['0']}", "a list of whole numbers"),
        ("imex: {channelIDs: [-1]}", "whole numbers are wanted"),
        ("resources: {gpus: []}", "ignores it, in every release"),
        (sliced("{name: gpu, replicas: 2, rename: x}"), "rename: the plugin ignores it"),
        (sliced("{name: gpu, replicas: 2, devices: [0]}"), "devices: the plugin ignores it"),
        (sliced("{name: gpu, replicas: 1}"), "replicas is a whole number from 2"),
        (sliced("{name: gpu, replicas: '4'}"), "replicas is a whole number from 2"),
        (sliced("{name: gpu, replicas: 010}"), "replicas is a whole number from 2"),  # 8 to Go
        (sliced("{name: gpu, replicas: 0x10}"), "replicas is a whole number from 2"),
        (sliced(", ".join(f"{{name: r{n}, replicas: 2}}" for n in range(65))), "at most 64"),
        (sliced("{name: gpu}"), "replicas is a whole number from 2"),
        (sliced("{name: gpu, replicas: 99999999999999999999}"), "replicas is a whole number from 2"),
        (sliced("{replicas: 4}"), "name is one such as nvidia.com/gpu"),
        (sliced("{name: GPU, replicas: 4}"), "name is one such as nvidia.com/gpu"),
        (sliced("{name: gpu, replica: 4}"), "did you mean replicas?"),
        (sliced("{name: gpu, replicas: 4}, {name: nvidia.com/gpu, replicas: 2}"), "a resource stands twice"),
        (sliced(""), "resources is a list"),
        ("sharing: {timeSlicing: {}}", "resources is a list"),
        ("sharing: {timeslicing: {}}", "did you mean sharing.timeSlicing?"),
        (
            "sharing:\n  mps: {resources: [{name: a, replicas: 2}]}\n"
            "  timeSlicing: {resources: [{name: a, replicas: 2}]}\n",
            "exclude each other",
        ),
        ("[1]", "no mapping"),
        ("x", "no mapping"),
        ("? [a]\n: b", "not YAML"),
        ("a: &x {b: 1}\nc: *x", "not YAML"),
        ("{" * 500, "not YAML"),
        ("a: " + "x" * 70_000, "over 65536 characters"),
        ("flags: {\x07: 1}", "not YAML"),
    ],
)
def test_each_fault_is_named(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_config(text)
    assert says in f"{refused.value.problem}\n{refused.value.evidence}"


def test_all_faults_are_reported_together() -> None:
    with pytest.raises(UsageError, match="3 faults") as refused:
        from_config("version: v3\nflags:\n  a: 1\n  b: 2\n")
    assert [line.split(":")[0] for line in refused.value.evidence.splitlines()] == ["line 1", "line 3", "line 4"]


@pytest.mark.parametrize("text", ["", "version: v1", "flags:\nsharing:\nimex:\n", "flags: {plugin: }", "# nothing\n"])
def test_a_file_may_say_nothing(text: str) -> None:
    assert not from_config(text).values


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        from_config(text)


@pytest.mark.parametrize(
    ("tag", "set", "text", "says"),
    [
        ("v0.20.0", ["mps-root="], "", "not an absolute path"),
        ("v0.20.0", [], MPS.replace("mpsRoot: /run/nvidia/mps", ""), "MPS needs mpsRoot"),
        ("v0.20.0", ["mig-strategy=mixed"], MPS, "MPS is not for MIG devices"),
        ("v0.20.0", ["mig-strategy=single"], MPS, "MPS is not for MIG devices"),
        ("v0.14.5", [], MPS, "MPS came with v0.15.0"),
        (
            "v0.19.3",
            [],
            MPS.replace("mps: {", "mps: {failRequestsGreaterThanOne: false, "),
            "always true before v0.20.0",
        ),
        ("v0.14.4", ["device-list-strategy=cdi-cri"], "", "device-list-strategy cdi-cri came with v0.15.0"),
        ("v0.20.0", ["device-list-strategy=cdi-cri", "device-discovery-strategy=tegra"], "", "systems with NVML"),
        ("v0.20.0", ["imex-channel-ids=1"], "", "none, or 0 alone"),
        ("v0.20.0", ["imex-channel-ids=0,1"], "", "none, or 0 alone"),
        ("v0.20.0", ["device-list-strategy="], "", "is empty"),
        ("v0.18.2", ["sleep-interval=infinite"], "", "infinite came with v0.19.0"),
        ("v0.20.0", ["mig-strategy"], "", "the form is NAME=VALUE"),
        ("v0.20.0", ["mig-strategi=none"], "", "did you mean"),
        ("v0.20.0", ["mig-strategy=none", "MIG_STRATEGY=none"], "", "stands twice"),
    ],
)
def test_what_does_not_go_together_is_refused(tag: str, set: list[str], text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        plugin(BY_TAG[tag], set, default=text)
    assert says in f"{refused.value.problem}\n{refused.value.evidence}"


@pytest.mark.parametrize(
    ("tag", "trapped"),
    [
        ("v0.18.2", False),
        ("v0.19.0", True),
        ("v0.19.1", True),
        ("v0.19.2", True),
        ("v0.19.3", False),
        ("v0.20.0", False),
    ],
)
def test_the_default_of_three_releases_is_named(tag: str, trapped: bool) -> None:
    said = [note for note in form_notes(plugin(BY_TAG[tag]), "manifest") if "by itself" in note]
    assert bool(said) is trapped
    off = [f"{name}-enabled=false" for name in ("gds", "mofed", "gdrcopy")]
    assert not list(form_notes(plugin(BY_TAG[tag], off), "manifest"))


@pytest.mark.parametrize("name", ["imex-channel-ids", "cdi-feature-flags", "cdi-disable-hooks"])
def test_an_empty_list_is_not_one_empty_value(name: str) -> None:
    """The plugin ends with `could not parse "" as int slice value`, and an empty list is what it has by itself."""
    plain = plugin()
    for form, spelling in (
        ("manifest", "flag"),
        ("manifest", "env"),
        ("manifest", "config"),
        ("unit", "env"),
        ("helm", None),
    ):
        assert printed(plugin(set=[f"{name}="]), form, spelling, Cluster()) == printed(plain, form, spelling, Cluster())
    one = plugin(set=["imex-channel-ids="], default="imex: {channelIDs: [0]}")
    assert "IMEX_CHANNEL_IDS" not in printed(one, "manifest", "env", Cluster())


@pytest.mark.parametrize("path", ["/", "/run/nvidia/driver", "/..a/b..", "/a/.b", "/opt/x@1.2+3"])
def test_a_path_may_have_dots(path: str) -> None:
    assert plugin(set=[f"driver-root={path}"]).settings.get("driver-root") == path


def test_what_is_typed_takes_precedence() -> None:
    assert plugin(set=["mig-strategy=mixed"], default="flags: {migStrategy: none}").settings.values == {
        "mig-strategy": "mixed"
    }


def test_groups_share_the_directories_of_their_pod() -> None:
    with pytest.raises(UsageError, match="driver-root differs between the groups: /a, /b"):
        plugin(x="flags: {nvidiaDriverRoot: /a}", y="flags: {nvidiaDriverRoot: /b}")
    both = plugin(x="flags: {nvidiaDriverRoot: /a}", y="")
    assert [one.get("driver-root") for one in both.groups.values()] == ["/a", "/a"]


@pytest.mark.parametrize("name", ["-x", "x-", "a b", "x" * 64, "é"])
def test_a_group_is_named_as_a_label_can_be(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a group"):
        plugin_of(NEWEST, OPTIONS, [f"{name}=file"], (), lambda path: "")


@pytest.mark.parametrize(
    ("form", "set", "says"),
    [
        ("helm", ["kubelet-socket=/x"], "cannot say kubelet-socket"),
        ("configmap", ["kubelet-socket=/x"], "has no place for KUBELET_SOCKET"),
        ("config", ["cdi-disable-hooks=all"], "has no place for CDI_DISABLE_HOOKS"),
    ],
)
def test_a_form_refuses_what_it_would_lose(form: str, set: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        printed(plugin(set=set), form, None, Cluster())


def test_a_unit_is_for_one_node() -> None:
    with pytest.raises(UsageError, match="has one config"):
        printed(plugin(a="", b=""), "unit", None, Cluster())
    with pytest.raises(UsageError, match="MPS needs its daemon"):
        printed(plugin(default=MPS), "unit", None, Cluster())
    with pytest.raises(UsageError, match="one file"):
        printed(plugin(a="", b=SLICED), "config", None, Cluster())


@pytest.mark.parametrize(
    ("form", "spelling", "says"),
    [("manifes", None, "did you mean manifest"), ("unit", "environ", "env"), ("helm", "env", "")],
)
def test_form_and_spelling_are_choices(form: str, spelling: str | None, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_form(form, spelling)
    assert says in refused.value.evidence
