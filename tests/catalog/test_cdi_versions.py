"""Which engine reads which CDI specification."""

from __future__ import annotations

import pytest

from gpunode.catalog.cdi_versions import behind, is_new, titles, version_of
from tests.engines.hosts import engine_facts, host_with


@pytest.mark.parametrize(
    ("name", "version", "old_only"),
    [
        ("podman", "4.9.3", True),
        ("podman", "5.0.3", True),
        ("podman", "5.1.0", False),
        ("podman", "3.4.4", False),
        ("docker", "25.0.5", True),
        ("docker", "26.0.0", True),
        ("docker", "26.1.5", False),
        ("docker", "24.0.9", False),
        ("containerd", "1.7.2", True),
        ("containerd", "v1.7.15", True),
        ("containerd", "1.7.16", False),
        ("containerd", "1.6.20~ds1", False),
        ("containerd", "2.1.9+unknown", False),
        ("crio", "1.29.1", True),
        ("crio", "1.30.0", False),
        ("k3s", "1.7.11-k3s2", True),
        ("k3s", "1.7.23-k3s2", False),
        ("podman", None, False),
    ],
)
def test_who_has_cdi_and_does_not_read_version_0_7(name: str, version: str | None, old_only: bool) -> None:
    engine = engine_facts(name, version, cdi=True)
    assert behind(host_with(engine, files={})) == ((engine,) if old_only else ())


def test_an_engine_with_cdi_off_counts_once_it_is_asked_for() -> None:
    host = host_with(engine_facts("docker", "26.0.0", cdi=False), engine_facts("podman", "4.9.3", cdi=True), files={})
    assert titles(behind(host)) == "podman 4.9.3"
    assert titles(behind(host, cdi=True)) == "docker 26.0.0 and podman 4.9.3"


@pytest.mark.parametrize(
    ("text", "version", "new"),
    [
        ("---\ncdiVersion: 0.7.0\nkind: nvidia.com/gpu\n", "0.7.0", True),
        ('{"cdiVersion":"0.7.0","kind":"nvidia.com/gpu"}', "0.7.0", True),
        ("cdiVersion: '1.0.0'\n", "1.0.0", True),
        ("kind: nvidia.com/gpu\ncdiVersion: 0.6.0\n", "0.6.0", False),
        ("# cdiVersion: 0.7.0\ncdiVersion: 0.5.0\n", "0.5.0", False),
        ("kind: nvidia.com/gpu\n", None, False),
    ],
)
def test_the_version_of_a_specification(text: str, version: str | None, new: bool) -> None:
    assert (version_of(text), is_new(text)) == (version, new)
