"""A server that is as it should be, and a kubeconfig for it where root believes one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.api_server import TOKEN, ApiServer, Authority, kubeconfig, serving
from tests.site_checks.places import trusted_directory


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def place() -> Iterator[Path]:
    with trusted_directory() as directory:
        yield directory


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[ApiServer]:
    with serving(authority.certify("kube-apiserver"), tmp_path) as server:
        yield server


@pytest.fixture
def config(place: Path, server: ApiServer, authority: Authority) -> Path:
    """Of somebody with a token."""
    return kubeconfig(place, server.address, authority.pem, {"token": TOKEN})
