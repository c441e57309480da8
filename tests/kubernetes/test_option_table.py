"""Every option in every spelling, form and release of the plugin, held against NVIDIA's own names (option_table.py)."""

from __future__ import annotations

from typing import Any

import pytest

from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_forms import form_notes, printed
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_pods import Cluster
from tests.kubernetes.option_table import ALIASES, CHART_SINCE, GFD, OLD, PLUGIN, TRAPPED, TRAPS, Wanted, numbers
from tests.kubernetes.plugins import OPTIONS, RELEASES, container, documents_of, plugin

HERE = Cluster()
ROWS = (*PLUGIN, *GFD)


def named(row: Wanted) -> str:
    return f"{row.flag}={row.typed}"


def of(row: Wanted, release: PluginRelease) -> Plugin | None:
    """None: the release has no such option, and is refused."""
    if release.numbers >= row.numbers:
        return plugin(release, [named(row)])
    with pytest.raises(UsageError, match="does not take these settings"):
        plugin(release, [named(row)])
    return None


def spellings(row: Wanted, release: PluginRelease) -> tuple[str, str]:
    """Flag and variable, as this release calls them."""
    turn, flag, env = OLD.get(row.flag, ("0.0.0", "", ""))
    return (flag, env) if release.numbers < numbers(turn) else (row.flag, row.env)


def at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values.get(key, {})
    return values


def same(found: object, wanted: object) -> bool:
    """ "true" is not true, and True is not 1."""
    return type(found) is type(wanted) and found == wanted


def config_of(objects: list[Any]) -> Any:
    (text,) = next(one["data"] for one in objects if one["kind"] == "ConfigMap").values()
    (config,) = documents_of(text)
    return config


def test_the_table_is_whole() -> None:
    assert {row.flag for row in ROWS} == {one.flag for one in OPTIONS}
    assert len(RELEASES) == 20


@pytest.mark.parametrize("row", PLUGIN, ids=named)
def test_a_manifest_has_flag_variable_and_key_of_the_release(row: Wanted) -> None:
    for release in RELEASES:
        if (one := of(row, release)) is None:
            continue
        flag, env = spellings(row, release)
        by_flag, by_env, by_file = (
            documents_of(printed(one, "manifest", way, HERE)) for way in ("flag", "env", "config")
        )
        assert container(by_flag)["args"] == [f"--{flag}={row.typed}"], release.tag
        assert container(by_env)["env"][0] == {"name": env, "value": row.typed}, release.tag
        beside = {said["name"]: said["value"] for said in container(by_file)["env"]}
        assert beside.pop("CONFIG_FILE") == "/config/config.yaml"
        beside.pop("NVIDIA_MIG_MONITOR_DEVICES", None)
        config = config_of(by_file)
        assert config.pop("version") == "v1"
        if row.config:
            assert same(at(config, row.config), row.yaml), release.tag
            assert beside == {}
        else:
            assert (config, beside) == ({}, {env: row.typed})


@pytest.mark.parametrize("row", GFD, ids=named)
def test_what_is_for_feature_discovery_is_in_the_file_alone(row: Wanted) -> None:
    for release in RELEASES:
        if (one := of(row, release)) is None:
            continue
        assert same(at(config_of(documents_of(printed(one, "manifest", None, HERE))), row.config), row.yaml)
        for way in ("flag", "env"):
            with pytest.raises(UsageError, match=f"cannot say {row.flag}"):
                printed(one, "manifest", way, HERE)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_chart_has_it_as_a_value_or_in_its_config_map(row: Wanted) -> None:
    for release in RELEASES:
        if (one := of(row, release)) is None:
            continue
        in_chart = row.helm and release.numbers >= numbers(CHART_SINCE.get(row.flag, "0.0.0"))
        if not (in_chart or row.config):
            with pytest.raises(UsageError, match=f"cannot say {row.flag}"):
                printed(one, "helm", None, HERE)
            continue
        (values,) = documents_of(printed(one, "helm", None, HERE))
        configs = values.pop("config", {}).get("map", {})
        if in_chart:
            assert same(at(values, row.helm), row.chart), release.tag
            assert configs == {}
        else:
            (config,) = documents_of(configs["default"])
            assert same(at(config, row.config), row.yaml), release.tag


def in_operator(row: Wanted, one: Plugin) -> None:
    if row.flag == "mps-root":
        with pytest.raises(UsageError, match="cannot say mps-root /run/mps"):
            printed(one, "gpu-operator", None, HERE)
        return
    (values,) = documents_of(printed(one, "gpu-operator", None, HERE))
    given = values["devicePlugin"]
    if row.flag == "mig-strategy":
        assert values["mig"] == {"strategy": row.typed}
    elif not row.config:
        assert given["env"] == [{"name": spellings(row, one.release)[1], "value": row.typed}]
    else:
        (text,) = given["config"]["data"].values()
        assert same(at(documents_of(text)[0], row.config), row.yaml)


def test_the_operator_has_one_place_for_mps() -> None:
    """Its chart drops devicePlugin.mps: templates/clusterpolicy.yaml, v26.7.0."""
    (values,) = documents_of(printed(plugin(set=["mps-root=/run/nvidia/mps"]), "gpu-operator", None, HERE))
    assert set(values["devicePlugin"]) == {"version"}


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_operators_values_the_config_map_and_the_file_have_it(row: Wanted) -> None:
    for release in RELEASES:
        if (one := of(row, release)) is None:
            continue
        in_operator(row, one)
        for form in ("config", "configmap"):
            if not row.config:
                with pytest.raises(UsageError, match="has no place for"):
                    printed(one, form, None, HERE)
                continue
            (document,) = documents_of(printed(one, form, None, HERE))
            config = document if form == "config" else config_of([document])
            assert same(at(config, row.config), row.yaml)


@pytest.mark.parametrize("row", PLUGIN, ids=named)
def test_a_unit_has_flag_variable_or_file(row: Wanted) -> None:
    for release in RELEASES:
        if (one := of(row, release)) is None:
            continue
        flag, env = spellings(row, release)
        assert f"device-plugin --{flag}={row.typed}\n" in printed(one, "unit", "flag", HERE)
        assert f"\nEnvironment={env}={row.typed}\n" in printed(one, "unit", "env", HERE)
        beside = f"\nEnvironment={env}={row.typed}\n" in printed(one, "unit", "config", HERE)
        assert beside is not bool(row.config)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_person_may_call_it_by_each_of_its_names(row: Wanted) -> None:
    _, *old = OLD.get(row.flag, ("",))
    more = [alias for alias, flag in ALIASES.items() if flag == row.flag]
    wanted = plugin(set=[named(row)]).settings.values
    for name in filter(None, (row.flag, f"--{row.flag}", row.env, row.config, row.helm, *old, *more)):
        assert plugin(set=[f"{name}={row.typed}"]).settings.values == wanted, name


def test_no_name_is_that_of_two_options() -> None:
    names = [name for one in OPTIONS for name in one.names]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.tag)
def test_the_trap_of_0_19_is_named_in_the_releases_that_have_it(release: PluginRelease) -> None:
    said = " ".join(form_notes(plugin(release), "helm"))
    assert [f"{name}" in said for name in TRAPS] == [release.tag in TRAPPED] * len(TRAPS)
    for name in TRAPS:
        if release.tag in TRAPPED:
            less = " ".join(form_notes(plugin(release, [f"{name}=false"]), "manifest"))
            assert f"switches {', '.join(other for other in TRAPS if other != name)} on by itself" in less
