"""Every option of the table in every spelling of every release: what is printed says what was wanted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.plugin_options import PluginOption
from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_forms import printed
from gpunode.kubernetes.plugin_model import Plugin, Settings, Value
from gpunode.kubernetes.plugin_pods import Cluster
from gpunode.kubernetes.plugin_values import spelled
from tests.kubernetes.plugins import (
    MPS,
    NEWEST,
    OPTIONS,
    SLICED,
    TURNS,
    container,
    documents_of,
    from_arguments,
    from_config,
    from_environment,
    from_helm,
    plugin,
)

EXAMPLES = {"path": ["/opt/nvidia"], "text": ["cdi.example.com/"], "duration": ["1m30s"], "numbers": ["0"]}
HERE = Cluster()


def examples(option: PluginOption) -> list[str]:
    """Each value of its own, or one of its kind; for a list also all that go together."""
    if option.kind == "flag":
        return ["true", "false"]
    if option.values:
        return [*option.values, "envvar,volume-mounts"] if option.kind == "words" else list(option.values)
    return EXAMPLES.get(option.kind, ["one,two"])


def fits(option: PluginOption, text: str, release: PluginRelease) -> bool:
    return release.numbers >= max(option.since, option.later.get(text, (0,)))


CASES = [(option, text) for option in OPTIONS for text in examples(option)]
IDS = [f"{option.flag}={text}" for option, text in CASES]


def read_back(one: Plugin, spelling: str) -> dict[str, Value]:
    objects = documents_of(printed(one, "manifest", spelling, HERE))
    said = container(objects)
    if spelling == "flag":
        return from_arguments(said.get("args", []))
    values = from_environment(said.get("env", []))
    if spelling == "config":
        (text,) = next(o["data"] for o in objects if o["kind"] == "ConfigMap").values()
        return {**from_config(text).values, **values}
    return values


@pytest.mark.parametrize(("option", "text"), CASES, ids=IDS)
def test_a_manifest_says_it_in_each_spelling(option: PluginOption, text: str) -> None:
    for release in TURNS:
        if fits(option, text, release):
            one = plugin(release, [f"{option.flag}={text}"])
            for spelling in ("config",) if option.gfd else ("flag", "env", "config"):
                assert read_back(one, spelling) == one.settings.values, (release.tag, spelling)


@pytest.mark.parametrize(("option", "text"), CASES, ids=IDS)
def test_the_chart_says_it_or_refuses(option: PluginOption, text: str) -> None:
    for release in TURNS:
        if not fits(option, text, release):
            continue
        one = plugin(release, [f"{option.flag}={text}"])
        if option.config is None and option.helm is None:
            with pytest.raises(UsageError, match=f"cannot say {option.flag}"):
                printed(one, "helm", None, HERE)
        else:
            (values,) = documents_of(printed(one, "helm", None, HERE))
            root: dict[str, Value] = {"driver-root": "/"} if one.settings.cdi else {}
            assert from_helm(values) == replace(one.settings, values={**root, **one.settings.values}), release.tag
            assert values["image"]["tag"] == release.tag


@pytest.mark.parametrize(("option", "text"), CASES, ids=IDS)
def test_a_release_before_the_option_refuses_it(option: PluginOption, text: str) -> None:
    for release in TURNS:
        if not fits(option, text, release):
            with pytest.raises(UsageError, match="does not take these settings") as refused:
                plugin(release, [f"{option.flag}={text}"])
            assert f"{option.flag}" in refused.value.evidence


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.flag)
def test_an_option_may_be_called_by_each_of_its_names(option: PluginOption) -> None:
    text = examples(option)[0]
    for name in option.names:
        assert plugin(set=[f"{name}={text}"]).settings.values == plugin(set=[f"{option.flag}={text}"]).settings.values


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.renamed > (0,)], ids=lambda option: option.flag)
def test_an_older_release_is_told_the_older_name(option: PluginOption) -> None:
    for release in TURNS:
        one = plugin(release, [f"{option.flag}=/opt/x"])
        old = release.numbers < option.renamed
        args = container(documents_of(printed(one, "manifest", "flag", HERE)))["args"]
        assert args == [f"--{option.old_flag if old else option.flag}=/opt/x"]
        env = container(documents_of(printed(one, "manifest", "env", HERE)))["env"]
        assert env[0]["name"] == (option.old_env if old else option.env)


@pytest.mark.parametrize("text", [MPS, SLICED], ids=["mps", "timeSlicing"])
@pytest.mark.parametrize("form", ["manifest", "configmap", "config", "helm", "gpu-operator"])
def test_sharing_comes_back_from_each_form_that_has_it(text: str, form: str) -> None:
    one = plugin(default=text)
    objects = documents_of(printed(one, form, None, HERE))
    found: Settings
    if form == "helm":
        found = from_helm(objects[0])
    elif form == "gpu-operator":
        (config,) = objects[0]["devicePlugin"]["config"]["data"].values()
        found = from_config(config)
    elif form == "config":
        found = from_config(printed(one, form, None, HERE))
    else:
        (config,) = next(o["data"] for o in objects if o["kind"] == "ConfigMap").values()
        found = from_config(config)
    assert found.sharing == one.settings.sharing


@pytest.mark.parametrize("spelling", ["flag", "env"])
@pytest.mark.parametrize("set", [[], ["mig-strategy=none"]])
def test_sharing_has_no_flag(spelling: str, set: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot say sharing"):
        printed(plugin(set=set, default=SLICED), "manifest", spelling, HERE)


def test_a_unit_says_the_same_in_each_spelling() -> None:
    one = plugin(set=["mig-strategy=single", "pass-device-specs=true", "kubelet-socket=/run/k.sock"])
    by_flag = printed(one, "unit", "flag", HERE)
    line = next(line for line in by_flag.splitlines() if line.startswith("ExecStart="))
    assert from_arguments(line.split()[1:]) == one.settings.values
    said = [
        line[12:].split("=", 1) for line in printed(one, "unit", "env", HERE).splitlines() if "Environment=" in line
    ]
    assert from_environment([{"name": name, "value": value} for name, value in said]) == one.settings.values
    by_file = printed(one, "unit", "config", HERE)
    assert "--config-file=/etc/nvidia-device-plugin/config.yaml\n" in by_file
    assert "Environment=KUBELET_SOCKET=/run/k.sock\n" in by_file


@pytest.mark.parametrize(
    ("set", "root"),
    [
        (["device-list-strategy=cdi-cri"], "/"),
        (["device-list-strategy=cdi-annotations", "driver-root=/run/nvidia/driver"], "/run/nvidia/driver"),
        (["driver-root=/run/nvidia/driver"], "/run/nvidia/driver"),
        ([], None),
    ],
)
def test_cdis_specification_is_made_from_the_hosts_files_in_each_form(set: list[str], root: str | None) -> None:
    one = plugin(set=set)
    (daemonset,) = documents_of(printed(one, "manifest", None, HERE))
    volumes = {volume["name"]: volume["hostPath"] for volume in daemonset["spec"]["template"]["spec"]["volumes"]}
    assert volumes.get("driver-root", {}).get("path") == root
    (values,) = documents_of(printed(one, "helm", None, HERE))
    assert values.get("nvidiaDriverRoot") == root
    for spelling in ("flag", "env", "config"):
        unit = printed(one, "unit", spelling, HERE).splitlines()
        assert [line for line in unit if "_CTR_PATH" in line] == [f"Environment=DRIVER_ROOT_CTR_PATH={root}"] * bool(
            root
        )


def test_a_unit_looks_for_the_driver_where_it_is_told_to() -> None:
    cri = "device-list-strategy=cdi-annotations"
    told = printed(plugin(set=[cri, "driver-root-ctr-path=/opt/nvidia"]), "unit", "env", HERE)
    assert told.count("DRIVER_ROOT_CTR_PATH=") == 1
    assert "Environment=DRIVER_ROOT_CTR_PATH=/opt/nvidia\n" in told
    (old, *_) = TURNS
    assert "Environment=CONTAINER_DRIVER_ROOT=/\n" in printed(plugin(old, [cri]), "unit", None, HERE)


def test_the_chart_mounts_the_driver_where_one_group_of_nodes_has_cdi() -> None:
    one = plugin(a="flags: {plugin: {deviceListStrategy: [cdi-cri]}}", b="")
    (values,) = documents_of(printed(one, "helm", None, HERE))
    assert values["nvidiaDriverRoot"] == "/"


def test_spelled_is_what_the_command_line_takes() -> None:
    assert [spelled(value) for value in (True, False, ("a", "b"), (0,), "x")] == ["true", "false", "a,b", "0", "x"]


def test_no_form_names_an_image_without_its_release() -> None:
    for form in ("manifest", "helm", "unit", "gpu-operator"):
        text = printed(plugin(default=SLICED if form != "unit" else ""), form, None, HERE)
        assert NEWEST.tag in text
        assert "latest" not in text
