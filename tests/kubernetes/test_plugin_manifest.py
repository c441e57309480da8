"""The DaemonSet of every release of the plugin, as every API server whose schema is known takes it."""

from __future__ import annotations

import pytest
import yaml

from gpunode.catalog.plugin_releases import plugin_releases
from gpunode.errors import UsageError
from gpunode.kubernetes.documents import documents
from gpunode.kubernetes.plugin_manifest import plugin_daemonset
from gpunode.kubernetes.plugin_version import chosen
from tests.kubernetes.schemas import RELEASES, faults

PLUGINS = plugin_releases()


@pytest.mark.parametrize("release", RELEASES)
def test_a_server_takes_the_daemonset_of_every_plugin(release: str) -> None:
    for plugin in PLUGINS:
        (read,) = yaml.safe_load_all(documents([plugin_daemonset(plugin)]))
        assert faults(read, release) == [], plugin.tag
        assert read["spec"]["template"]["spec"]["containers"][0]["image"].endswith(f":{plugin.tag}")


def test_the_schemas_do_refuse() -> None:
    read = yaml.safe_load(documents([plugin_daemonset(PLUGINS[-1])]))
    read["spec"]["template"]["spec"]["tolerationz"] = []
    assert faults(read, RELEASES[-1])


def test_releases_are_in_the_order_of_their_versions() -> None:
    assert [one.numbers for one in PLUGINS] == sorted(one.numbers for one in PLUGINS)


@pytest.mark.parametrize(
    ("text", "tag"),
    [(None, PLUGINS[-1].tag), ("v0.17.1", "v0.17.1"), ("0.17.1", "v0.17.1"), ("0.17", "v0.17.4"), ("v0.14", "v0.14.5")],
)
def test_a_release_may_be_named_by_its_first_two_numbers(text: str | None, tag: str) -> None:
    assert chosen(text, PLUGINS).tag == tag


@pytest.mark.parametrize("text", ["", "v", "0", "latest", "0.13.0", "v0.20.00", "0.20.0-rc.1", "x" * 9999, "\x1b[2J"])
def test_what_is_no_known_release_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not known"):
        chosen(text, PLUGINS)
