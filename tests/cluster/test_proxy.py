"""kubectl's rules for proxies, where the client's own are others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.cluster.kubeconfig import Access, read_kubeconfig
from gpunode.cluster.node import read_node
from gpunode.cluster.proxy import proxy_of
from gpunode.cluster.server import open_server
from gpunode.errors import GpunodeError
from tests.cluster.api_server import TOKEN, ApiServer, Authority, kubeconfig

REMOTE, HERE = "https://10.0.0.1:6443", "https://127.0.0.1:6443"
DEAD = "http://127.0.0.1:9"


def access(place: Path, server: str, **cluster: str) -> Access:
    return read_kubeconfig(kubeconfig(place, server, Authority().pem, {"token": TOKEN}, **cluster), None)


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        (REMOTE, {}, (None, None)),
        (REMOTE, {"HTTPS_PROXY": "http://proxy:3128"}, ("http://proxy:3128", None)),
        (REMOTE, {"https_proxy": "proxy:3128", "no_proxy": ".lab"}, ("http://proxy:3128", ".lab")),
        (REMOTE, {"HTTPS_PROXY": "http://a", "https_proxy": "http://b"}, ("http://a", None)),
        (REMOTE, {"HTTP_PROXY": "http://proxy", "ALL_PROXY": "http://proxy"}, (None, None)),
        (HERE, {"HTTPS_PROXY": "http://proxy:3128"}, (None, None)),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://proxy:3128"}, (None, None)),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://proxy:3128"}, (None, None)),
    ],
    ids=["none", "named", "no scheme is http", "capitals go first", "another's", "this machine", "by name", "by IPv6"],
)
def test_of_the_environment(
    server: str, environment: dict[str, str], expected: tuple[str | None, str | None], place: Path
) -> None:
    assert proxy_of(access(place, server), environment) == expected


def test_a_kubeconfigs_own_holds_whatever_the_environment_says(place: Path) -> None:
    environment = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    assert proxy_of(access(place, REMOTE, **{"proxy-url": DEAD}), environment) == (DEAD, None)


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY"])
def test_a_cluster_on_this_machine_is_asked_past_the_proxy(
    name: str, server: ApiServer, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """k3s' own kubeconfig names 127.0.0.1, and /etc/environment a proxy."""
    monkeypatch.setenv(name, DEAD)
    with open_server(read_kubeconfig(config, None)) as asked:
        assert read_node(asked, "gpu07").kubelet


def test_a_bastion_that_no_proxy_names_is_gone_through(
    server: ApiServer, authority: Authority, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    path = kubeconfig(place, server.address, authority.pem, {"token": TOKEN}, **{"proxy-url": DEAD})
    with open_server(read_kubeconfig(path, None)) as asked, pytest.raises(GpunodeError):
        read_node(asked, "gpu07")
    assert server.asked == []
