"""Kubernetes distributions with a containerd of their own: the table closes, and releases compare as releases."""

from __future__ import annotations

import re

import pytest

from gpunode.catalog.rows import GRADES, Row
from gpunode.catalog.runtimes import _distribution, kubernetes_distribution, kubernetes_distributions
from gpunode.engines.registry import ENGINES
from gpunode.errors import UsageError


def test_every_row_says_where_it_comes_from_and_has_its_engine() -> None:
    for row in kubernetes_distributions():
        assert row.source
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.checked)
        assert row.grade in GRADES
        assert row.name in ENGINES
        assert "unverified" not in row.source or row.grade != "documented"


def test_every_place_is_absolute_and_every_unit_a_service() -> None:
    for row in kubernetes_distributions():
        assert all(path.startswith("/") for path in (row.config, row.socket, row.reads))
        assert all(unit.endswith(".service") for unit in row.units)


@pytest.mark.parametrize(
    ("name", "version", "fits"),
    [
        ("k3s", "1.34.1+k3s1", True), ("k3s", "v1.29.0+k3s1", True), ("k3s", "1.28.10+k3s1", True),
        ("k3s", "1.28.4+k3s1", False), ("k3s", "1.20.15+k3s1", False), ("k3s", "no version", True),
        ("k0s", "1.27.1+k0s.0", True), ("k0s", "1.27.0+k0s.0", False), ("microk8s", "1.20.0", True),
    ],
)  # fmt: skip
def test_which_releases_understand_what_is_written(name: str, version: str, fits: bool) -> None:
    assert kubernetes_distribution(name).understands(version) is fits


def test_a_release_that_is_none_is_a_fault_of_its_row() -> None:
    values = {
        "name": "x", "units": ["x.service"], "config": "/c", "socket": "/s", "reads": "/r", "since": ["1.29"],
            "kubelet_args": "x",
        "why": "w",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"x\.since: '1\.29' is not a release"):
        _distribution(Row("runtimes.yaml", "x", values))
