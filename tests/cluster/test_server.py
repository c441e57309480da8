"""What an API server may do to who asks it: each is one error, in time, of a bounded size, and without the token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpunode.cluster import bounded_pool
from gpunode.cluster.faults import Answered, Unanswered
from gpunode.cluster.kubeconfig import read_kubeconfig
from gpunode.cluster.node import read_node
from gpunode.cluster.server import Server, open_server
from gpunode.errors import ExitCode, GpunodeError, UnsupportedHost
from tests.cluster.api_server import NODE, TOKEN, Answer, ApiServer, Authority, Handler, kubeconfig, serving, status


@contextmanager
def asking(config: Path) -> Iterator[Server]:
    with open_server(read_kubeconfig(config, None)) as server:
        yield server


def refused(config: Path) -> GpunodeError:
    with asking(config) as server, pytest.raises(GpunodeError) as raised:
        read_node(server, "gpu07")
    assert TOKEN not in f"{raised.value.problem} {raised.value.evidence}"
    return raised.value


def test_a_node_is_read_with_the_token_and_whatever_else_is_in_its_object(server: ApiServer, config: Path) -> None:
    with asking(config) as asked:
        node = read_node(asked, "gpu07")
    assert (node.labels, node.kubelet, node.version) == ({"team": "ml"}, "v1.31.4", "1")
    assert server.headers == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    ("code", "means"),
    [
        (401, "does not know who asks"),
        (403, "does not allow it"),
        (409, "refuses it"),
        (500, "is not well"),
        (503, "is not well"),
        (302, "refuses it"),
    ],
)
def test_an_answer_that_is_a_refusal(server: ApiServer, config: Path, code: int, means: str) -> None:
    elsewhere = f"{server.address}/elsewhere"
    server.answers["GET", NODE] = lambda h: h.say(code, status(code, f"no, {TOKEN}\nsecond line"), Location=elsewhere)
    error = refused(config)
    assert isinstance(error, Answered)
    assert error.code == ExitCode.UNREACHABLE
    assert error.problem == f"{server.address} {means}: get node gpu07"
    assert error.evidence == f"{code} no, ..."
    assert server.asked == [("GET", NODE)]  # neither followed nor repeated


@pytest.mark.parametrize("lead", ["no, ", " " * (64 << 10)])
@pytest.mark.parametrize("form", ["a status", "a text"])
def test_a_long_token_is_not_quoted_in_part(
    server: ApiServer, place: Path, authority: Authority, lead: str, form: str
) -> None:
    token = "eyJ" + "x" * 897  # as long as a service account's
    said = f"{lead}{token}{'y' * 900}"
    body = status(403, said) if form == "a status" else {"error": said}
    server.answers["GET", NODE] = lambda h: h.say(403, body)
    error = refused(kubeconfig(place, server.address, authority.pem, {"token": token}))
    assert "eyJ" not in f"{error.problem} {error.evidence}"
    assert len(error.evidence) < 500


def test_many_ask_at_once_and_nothing_is_printed_about_it(
    server: ApiServer, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with asking(config) as asked, ThreadPoolExecutor(50) as threads:
        names = list(threads.map(lambda _: read_node(asked, "gpu07").name, range(200)))
    assert names == ["gpu07"] * 200
    assert caplog.records == []


def test_no_such_node_names_the_option(server: ApiServer, config: Path) -> None:
    server.answers["GET", NODE] = lambda h: h.say(404, status(404, 'nodes "gpu07" not found'))
    error = refused(config)
    assert isinstance(error, UnsupportedHost)
    assert 'nodes "gpu07" not found' in error.evidence
    assert "--node" in error.remedy.text


@pytest.mark.parametrize("after", ["0", "-5", "²"])
def test_a_server_that_is_busy_is_asked_again(server: ApiServer, config: Path, after: str) -> None:
    def busy(handler: Handler) -> None:
        del server.answers["GET", NODE]
        handler.say(429, status(429, "too many requests"), Retry_After=after)

    server.answers["GET", NODE] = busy
    with asking(config) as asked:
        assert read_node(asked, "gpu07").name == "gpu07"
    assert server.asked == [("GET", NODE)] * 2


def test_a_server_that_stays_busy_is_given_up(server: ApiServer, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpunode.cluster.server.CALL_S", 0.5)
    server.answers["GET", NODE] = lambda h: h.say(429, status(429, "too many requests"), Retry_After="9999999999")
    with asking(config) as asked, pytest.raises(Answered, match="is too busy"):
        asked.text("get node gpu07", lambda api: api.read_node("gpu07", _preload_content=False), 0.5)


def sends(*pieces: bytes) -> Answer:
    """These, and then nothing until the test is over."""

    def answer(handler: Handler) -> None:
        for piece in pieces:
            handler.wfile.write(piece)
        handler.wfile.flush()
        handler.server.over.wait(60)
        handler.close_connection = True

    return answer


def drips(handler: Handler) -> None:
    """A byte now and then, for ever: no limit between two bytes is ever over."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not handler.server.over.wait(0.05):
        handler.wfile.write(b"x")
        handler.wfile.flush()


@pytest.mark.parametrize(
    "answer",
    [sends(), sends(b"HTTP/1.1 200 OK\r\n"), sends(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), drips],
    ids=["nothing", "half a head", "half a body", "a byte now and then"],
)
def test_a_server_that_hangs_is_given_up(server: ApiServer, config: Path, answer: Answer) -> None:
    server.answers["GET", NODE] = answer
    with asking(config) as asked, pytest.raises(Unanswered, match=r"did not answer within 1 s: get node gpu07"):
        asked.text("get node gpu07", lambda api: api.read_node("gpu07", _preload_content=False), 1)


def endless(code: bytes) -> Answer:
    def answer(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 " + code + b" X\r\nContent-Type: application/json\r\n\r\n")
        handler.close_connection = True
        try:
            while not handler.server.over.is_set():
                handler.wfile.write(b" " * 65536)
        except OSError:
            handler.server.asked.append(("left", ""))

    return answer


@pytest.mark.parametrize("code", [b"200", b"500"])
def test_an_answer_without_end_is_left(server: ApiServer, config: Path, code: bytes) -> None:
    server.answers["GET", NODE] = endless(code)
    error = refused(config)
    assert f"it is over {bounded_pool.MOST_BYTES} bytes" in error.evidence


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"[" * 100_000, b'{"a": NaN}', b"\xff\xfe", b'{"metadata": ' * 500, b""],
    ids=["html", "a list", "deep", "NaN", "bytes", "deep objects", "nothing"],
)
def test_an_answer_that_is_no_object(server: ApiServer, config: Path, body: bytes) -> None:
    def answer(handler: Handler) -> None:
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )

    server.answers["GET", NODE] = answer
    assert "did not answer with" in refused(config).problem


@pytest.mark.parametrize(
    "node",
    [{}, {"metadata": []}, {"metadata": {"labels": {"a": 1, "b": None}, "annotations": "x"}, "status": [1]},
     {"status": {"conditions": {"type": "Ready"}, "capacity": [], "nodeInfo": {"kernelVersion": {}}}, "spec": None},
     {"status": {"conditions": [1, None, {"type": "Ready"}]}, "spec": {"taints": [{"key": 1}], "unschedulable": "y"}}],
)  # fmt: skip
def test_an_object_of_any_form_is_read(server: ApiServer, config: Path, node: dict[str, Any]) -> None:
    server.node = node
    with asking(config) as asked:
        found = read_node(asked, "gpu07")
    assert (found.labels, found.facts.taints, found.facts.unschedulable) == ({}, (), False)


# --- whom the kubeconfig believes


def test_a_server_of_another_authority_gets_no_token(server: ApiServer, place: Path) -> None:
    config = kubeconfig(place, server.address, Authority("another").pem, {"token": TOKEN})
    error = refused(config)
    assert "its certificate is not accepted" in error.problem
    assert server.headers == []


def test_a_certificate_that_is_over(authority: Authority, place: Path, tmp_path: Path) -> None:
    with serving(authority.certify("kube-apiserver", days=-1), tmp_path) as server:
        error = refused(kubeconfig(place, server.address, authority.pem, {"token": TOKEN}))
    assert "certificate has expired" in error.evidence
    assert server.headers == []


def test_a_certificate_of_another_name(server: ApiServer, authority: Authority, place: Path) -> None:
    user, name = {"token": TOKEN}, {"tls-server-name": "kubernetes.example"}
    error = refused(kubeconfig(place, server.address, authority.pem, user, **name))
    assert "kubernetes.example" in error.evidence
    assert server.headers == []


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "a_b.example", "x" * 63])
def test_a_name_that_may_be_a_servers_is_tried(server: ApiServer, authority: Authority, place: Path, name: str) -> None:
    config = kubeconfig(place, server.address, authority.pem, {"token": TOKEN}, **{"tls-server-name": name})
    if name == "127.0.0.1":
        with asking(config) as asked:
            assert read_node(asked, "gpu07").name == "gpu07"
    else:
        assert "its certificate is not accepted" in refused(config).problem


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 70}.example", ".x"])
@pytest.mark.parametrize("place_of_it", ["server", "proxy-url"])
def test_an_address_that_none_can_be(authority: Authority, place: Path, host: str, place_of_it: str) -> None:
    proxy = {"proxy-url": f"http://{host}:3128"} if place_of_it == "proxy-url" else {}
    address = "https://127.0.0.1:1" if proxy else f"https://{host}:6443"
    error = refused(kubeconfig(place, address, authority.pem, {"token": TOKEN}, **proxy))
    assert error.code == ExitCode.UNREACHABLE


def test_what_stands_around_a_certificate_may_be_in_any_letters(
    server: ApiServer, authority: Authority, place: Path
) -> None:
    (place / "ca.pem").write_text(f"# Zürich, für alle\n{authority.pem}", encoding="utf-8")
    config = kubeconfig(place, server.address, None, {"token": TOKEN}, **{"certificate-authority": "ca.pem"})
    with asking(config) as asked:
        assert read_node(asked, "gpu07").name == "gpu07"


def test_without_an_authority_the_systems_count(
    server: ApiServer, authority: Authority, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kubeconfig(place, server.address, None, {"token": TOKEN})
    assert "its certificate is not accepted" in refused(config).problem
    (place / "system.pem").write_text(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(place / "system.pem"))
    with asking(config) as asked:
        assert read_node(asked, "gpu07").name == "gpu07"


def test_insecure_believes_anybody(server: ApiServer, place: Path) -> None:
    config = kubeconfig(place, server.address, None, {"token": TOKEN}, **{"insecure-skip-tls-verify": True})
    with asking(config) as asked:
        assert read_node(asked, "gpu07").name == "gpu07"


def test_nobody_answers(authority: Authority, place: Path) -> None:
    error = refused(kubeconfig(place, "https://127.0.0.1:1", authority.pem, {"token": TOKEN}))
    assert error.code == ExitCode.UNREACHABLE
    assert error.evidence == "Failed to establish a new connection: [Errno 111] Connection refused"


def test_no_key_is_left_in_a_file(server: ApiServer, authority: Authority, place: Path, tmp_path: Path,
                                  monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    import base64

    certificate, key = (base64.b64encode(text.encode()).decode() for text in authority.certify("me", "masters"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    config = kubeconfig(
        place, server.address, authority.pem, {"client-certificate-data": certificate, "client-key-data": key}
    )
    with asking(config) as asked:
        read_node(asked, "gpu07")
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("group", "name", "node"),
    [
        ("system:nodes", "system:node:gpu07", "gpu07"),
        ("system:masters", "system:node:gpu07", None),
        ("system:nodes", "gpu07", None),
    ],
)
def test_a_nodes_own_identity_is_known_by_its_certificate(
    server: ApiServer, authority: Authority, place: Path, group: str, name: str, node: str | None
) -> None:
    certificate, key = authority.certify(name, group)
    (place / "client.pem").write_text(certificate + key)
    files = {"client-certificate": "client.pem", "client-key": str(place / "client.pem")}
    with asking(kubeconfig(place, server.address, authority.pem, files)) as asked:
        assert asked.node == node


def test_the_status_of_a_refusal_may_be_anything(server: ApiServer, config: Path) -> None:
    server.answers["GET", NODE] = lambda h: h.say(500, {"message": {"a": 1}})
    assert refused(config).evidence == f"500 {json.dumps({'message': {'a': 1}})}"
