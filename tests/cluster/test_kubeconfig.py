"""A kubeconfig is anybody's: what it may say, whose is read as root, and that no fault shows a secret."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpunode.cluster.kubeconfig import read_kubeconfig
from gpunode.cluster.server import open_server
from gpunode.errors import UsageError
from tests.cluster.api_server import TOKEN, Authority

ROOT = os.geteuid() == 0
BASE: dict[str, Any] = {
    "current-context": "lab",
    "contexts": [{"name": "lab", "context": {"cluster": "one", "user": "me"}}, {"name": "other", "context": {}}],
    "clusters": [{"name": "one", "cluster": {"server": "https://10.0.0.1:6443", "future": {"a": [1]}}}],
    "users": [{"name": "me", "user": {"token": TOKEN}}],
}


def written(place: Path, document: object) -> Path:
    path = place / "config"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    path.chmod(0o600)
    return path


def of(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    server = {"server": "https://10.0.0.1:6443"}
    return BASE | {
        "clusters": [{"name": "one", "cluster": server | (cluster or {})}],
        "users": [{"name": "me", "user": {"token": TOKEN} if user is None else user}],
    }


def why_refused(path: Path, context: str | None = None) -> str:
    with pytest.raises(UsageError) as raised:
        read_kubeconfig(path, context)
    error = raised.value
    assert error.remedy
    said = f"{error.problem} | {error.evidence} | {error.remedy.text}"
    assert TOKEN not in said
    return said


def test_the_current_context_with_its_token(place: Path) -> None:
    access = read_kubeconfig(written(place, BASE), None)
    assert access.server == "https://10.0.0.1:6443"
    assert access.header is not None
    assert access.header.reveal() == f"Bearer {TOKEN}"
    assert TOKEN not in repr(access)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("", "it has no current context"),
        ("[]", "the file is not a mapping"),
        ("a: [", "is not YAML"),
        ("a: &x [1]\nb: *x\n", "an alias of a list or mapping"),
        ("[" * 5000, "nested too deeply"),
        ("x" * (1 << 20) + "x", "it is over"),
        (BASE | {"contexts": {}}, "contexts is not a list"),
        (BASE | {"contexts": [1]}, "contexts is not a mapping"),
        (BASE | {"contexts": []}, "it has no context 'lab'"),
        (BASE | {"contexts": BASE["contexts"][:1] * 2}, "'lab' stands twice in contexts"),
        ('{"current-context": "a", "current-context": "b"}', "current-context stands twice"),
        (BASE | {"clusters": []}, "it has no cluster 'one', which its context names"),
        (BASE | {"users": []}, "it has no user 'me', whom its context names"),
        (of({"server": "10.0.0.1:6443"}), "its server is no address"),
        (of({"server": "https://me:pw@10.0.0.1"}), "its server is no address"),
        (of({"server": "https://10.0.0.1:x"}), "its server is no address"),
        (of({"server": "https://[::1"}), "its server is no address"),
        (of({"server": "https://10.0.0.1/\r\nx"}), "its server has blanks"),
        (of({"server": ["https://10.0.0.1"]}), "server is not text"),
        (of({"server": "file:///etc/shadow"}), "its server is no address"),
        (of({"server": "http://10.0.0.1"}, {}), "its server has no TLS"),
        (of({"server": "http://127.0.0.1:8001"}), "its server has no TLS"),
        (of({"server": "http://127.0.0.1:8001"}, {"exec": {"command": "x"}}), "its server has no TLS"),
        (of({"insecure-skip-tls-verify": "yes"}), "is neither true nor false"),
        (of({"insecure-skip-tls-verify": True, "certificate-authority-data": "QQ=="}), "which of them holds?"),
        (of({"certificate-authority-data": "%%%"}), "its certificate-authority-data is no base64"),
        (of({"certificate-authority": "nowhere.pem"}), "its certificate-authority cannot be used"),
        (of({"certificate-authority": "/"}), "its certificate-authority cannot be used"),
        (of({"certificate-authority": "a\0b"}), "certificate-authority is not text"),
        (of({"proxy-url": "http://proxy example"}), "its proxy-url has blanks"),
        (of({"tls-server-name": ".x"}), "its tls-server-name is neither a name nor an address"),
        (of({"tls-server-name": "a..b"}), "its tls-server-name is neither"),
        (of({"tls-server-name": "x" * 70}), "its tls-server-name is neither"),
        (of({"tls-server-name": ".".join(["x" * 63] * 4)}), "its tls-server-name is neither"),
        (of({"tls-server-name": "*.example"}), "its tls-server-name is neither"),
        (of(user={"token": f"{TOKEN} x"}), "its token has blanks"),
        (of(user={"token": [TOKEN]}), "token is not text"),
        (of(user={"tokenFile": "nowhere"}), "its tokenFile cannot be used"),
        (of(user={"client-key-data": "QQ=="}), "only one of client-certificate and client-key"),
        (of(user={"as": "admin", "token": TOKEN}), "its user has as, which is not supported"),
        (of(user={"auth-provider": {"name": "oidc", "config": {"id-token": TOKEN}}}), "its user has auth-provider"),
        (of(user={"exec": TOKEN}), "exec is not a mapping"),
        (of(user={"exec": {"apiVersion": "v1"}}), "its exec has no command"),
        (of(user={"exec": {"command": "x", "interactiveMode": "Always"}}), "asks on a terminal"),
        (of(user={"exec": {"command": "x", "args": ["x"] * 65}}), "args has over 64 entries"),
        (of(user={"exec": {"command": "x", "env": [{"value": TOKEN}]}}), "a variable without a name"),
    ],
)
def test_what_is_refused(place: Path, document: object, says: str) -> None:
    assert says in why_refused(written(place, document))


def test_a_context_that_is_not_there_names_those_that_are(place: Path) -> None:
    said = why_refused(written(place, BASE), "othr")
    assert "did you mean other? its contexts are lab, other" in said
    assert "--context" in said


@pytest.mark.parametrize(
    ("cluster", "user", "says"),
    [
        ({"certificate-authority-data": "QQ=="}, None, "its certificate-authority is no certificate in PEM"),
        ({}, {"client-certificate-data": "QQ==", "client-key-data": "QQ=="}, "no certificate with its key, in PEM"),
    ],
)
def test_keys_that_are_none(place: Path, cluster: dict[str, Any], user: dict[str, Any] | None, says: str) -> None:
    access = read_kubeconfig(written(place, of(cluster, user)), None)
    with pytest.raises(UsageError, match=says), open_server(access):
        pass


def test_an_authority_with_letters_in_it_that_no_certificate_has(place: Path) -> None:
    (place / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nä\n-----END CERTIFICATE-----\n", encoding="utf-8")
    access = read_kubeconfig(written(place, of({"certificate-authority": "ca.pem"})), None)
    with pytest.raises(UsageError, match="certificate-authority is no certificate"), open_server(access):
        pass


ODD_PROXIES = ("socks5://127.0.0.1:1", "ftp://127.0.0.1", "http://[x", "http://x:99999")


@pytest.mark.parametrize(
    ("by", "proxy"),
    [(by, proxy) for by in ("proxy-url", "HTTPS_PROXY") for proxy in ODD_PROXIES]
    + [("proxy-url", "127.0.0.1:3128"), ("proxy-url", "xx")],
)
def test_a_proxy_of_another_kind(place: Path, by: str, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "HTTPS_PROXY":
        monkeypatch.setenv(by, proxy)
    access = read_kubeconfig(written(place, of({by: proxy})), None)
    with pytest.raises(UsageError, match="through this proxy") as raised, open_server(access):
        pass
    assert by in raised.value.evidence


def test_an_authority_wrapped_as_base64_of_coreutils_wraps_it(place: Path) -> None:
    """`base64 ca.crt` into a block scalar; the bundle has comments in the letters of its authority's country."""
    pem = f"# Főtanúsítvány\n{Authority().pem}"
    for packed in (base64.encodebytes(pem.encode()), base64.b64encode(pem.encode()).replace(b"A", b"A\r\n")):
        access = read_kubeconfig(written(place, of({"certificate-authority-data": packed.decode()})), None)
        assert access.authority == pem
        with open_server(access):
            pass


def test_a_file_of_a_token_wins_over_the_token(place: Path) -> None:
    (place / "token").write_text("fresh\n")
    access = read_kubeconfig(written(place, of(user={"token": TOKEN, "tokenFile": "token"})), None)
    assert access.header is not None
    assert access.header.reveal() == "Bearer fresh"


def test_a_pipe_that_nobody_writes_to_holds_nobody_up(place: Path) -> None:
    os.mkfifo(place / "pipe", 0o600)
    assert "no current context" in why_refused(place / "pipe")
    access = read_kubeconfig(written(place, of({"certificate-authority": "pipe"})), None)
    with pytest.raises(UsageError, match="certificate-authority is no certificate"), open_server(access):
        pass


def test_no_such_file(tmp_path: Path) -> None:
    assert "No such file" in why_refused(tmp_path / "nowhere")


@pytest.mark.skipif(not ROOT, reason="of what root believes")
class TestAsRoot:
    def test_a_file_that_its_group_may_write(self, place: Path) -> None:
        path = written(place, BASE)
        path.chmod(0o620)
        assert f"is not read as root: {path} can be written by its group" in why_refused(path)

    def test_a_file_of_somebody_elses(self, place: Path) -> None:
        path = written(place, BASE)
        os.chown(path, 65534, -1)
        assert f"{path} belongs to user 65534" in why_refused(path)

    def test_a_link_in_a_directory_that_everybody_may_write(self, place: Path, tmp_path: Path) -> None:
        written(place, BASE)
        (tmp_path / "config").symlink_to(place / "config")
        assert "/tmp can be written by its group" in why_refused(tmp_path / "config")

    def test_links_in_a_circle(self, place: Path) -> None:
        (place / "config").symlink_to(place / "config")
        assert "cannot be read" in why_refused(place / "config")

    def test_a_key_that_everybody_may_write(self, place: Path) -> None:
        path = written(place, of(user={"tokenFile": "token"}))
        (place / "token").write_text("fresh")
        (place / "token").chmod(0o602)
        assert f"{place}/token is not read as root" in why_refused(path)


@pytest.mark.skipif(not ROOT, reason="who is no root has nobody to become")
def test_who_is_not_root_reads_their_own_whatever_its_mode(place: Path) -> None:
    """Where umask is 002 their group may write it, and only they themselves are asked for it."""
    path = written(place, BASE)
    path.chmod(0o666)
    place.chmod(0o755)
    program = (
        "import os, sys, yaml; from pathlib import Path; from gpunode.cluster.kubeconfig import read_kubeconfig;"
        "os.setgroups([]); os.setuid(65534); print(read_kubeconfig(Path(sys.argv[1]), None).server)"
    )
    done = subprocess.run((sys.executable, "-c", program, str(path)), capture_output=True, text=True, check=False)
    assert done.stdout == "https://10.0.0.1:6443\n", done.stderr
