"""A program of a kubeconfig: it is run with its words and a limit, and nothing that it prints is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpunode.cluster import exec_credential
from gpunode.cluster.exec_credential import VERSIONS, with_credentials
from gpunode.cluster.kubeconfig import Access, read_kubeconfig
from gpunode.cluster.node import read_node
from gpunode.cluster.server import open_server
from gpunode.errors import ExitCode, GpunodeError
from tests.cluster.api_server import TOKEN, ApiServer, Authority, kubeconfig
from tests.site_checks.places import program

SECRET = "only-the-program-knows"


def printing(document: object) -> str:
    return f"cat <<'END'\n{document if isinstance(document, str) else json.dumps(document)}\nEND"


def granted(**status: Any) -> str:
    return printing({"apiVersion": VERSIONS[0], "kind": "ExecCredential", "status": status})


def access_of(place: Path, body: str, **more: Any) -> Access:
    program(place, "login", body)
    user = {"exec": {"apiVersion": VERSIONS[0], "command": "./login", **more}}
    return read_kubeconfig(kubeconfig(place, "https://127.0.0.1:1", None, user), None)


def failed(access: Access) -> GpunodeError:
    with pytest.raises(GpunodeError) as raised:
        with_credentials(access)
    error = raised.value
    assert SECRET not in f"{error.problem} {error.evidence} {error.remedy.text}"
    return error


def test_its_token_goes_to_the_server(server: ApiServer, authority: Authority, place: Path) -> None:
    program(place, "login", granted(token=TOKEN))
    user = {"exec": {"apiVersion": VERSIONS[1], "command": "./login"}}
    access = read_kubeconfig(kubeconfig(place, server.address, authority.pem, user), None)
    with open_server(with_credentials(access)) as asked:
        read_node(asked, "gpu07")
    assert server.headers == [f"Bearer {TOKEN}"]


def test_it_gets_its_words_its_variables_and_what_is_asked(place: Path) -> None:
    body = f'printf "%s\\n" "$@" "$REGION" "$HOME" "$KUBERNETES_EXEC_INFO" >{place}/seen\n' + granted(token=TOKEN)
    words = {"args": ["get-token", "--x=a b"], "env": [{"name": "REGION", "value": "eu"}], "provideClusterInfo": True}
    assert with_credentials(access_of(place, body, **words)).header is not None
    *seen, asked = (place / "seen").read_text().splitlines()
    assert seen == ["get-token", "--x=a b", "eu", os.environ["HOME"]]
    spec = {"interactive": False, "cluster": {"server": "https://127.0.0.1:1"}}
    assert json.loads(asked) == {"apiVersion": VERSIONS[0], "kind": "ExecCredential", "spec": spec}


def test_its_certificate_is_taken_as_well(place: Path, authority: Authority) -> None:
    certificate, key = authority.certify("me")
    access = with_credentials(access_of(place, granted(clientCertificateData=certificate, clientKeyData=key)))
    assert (access.header, access.program) == (None, None)
    assert access.certificate is not None


def test_it_is_not_run_where_there_is_a_token(place: Path) -> None:
    program(place, "login", "exit 1")
    user = {"token": TOKEN, "exec": {"apiVersion": VERSIONS[0], "command": "./login"}}
    access = read_kubeconfig(kubeconfig(place, "https://127.0.0.1:1", None, user), None)
    assert with_credentials(access) is access


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (f"echo {SECRET}; echo {SECRET} >&2; exit 3", "it ended with 3"),
        (f"echo {SECRET}", "it did not print JSON"),
        (printing([SECRET]), "neither a token nor a certificate"),
        (granted(), "neither a token nor a certificate"),
        (granted(token=f"{SECRET} x"), "its token is none"),
        (granted(token=[SECRET]), "its token is none"),
        (granted(clientCertificateData=SECRET), "neither a token nor a certificate"),
        (f"yes {SECRET}", "printed over 65536 bytes"),
        ("exec sleep 60", "did not end within 1 s"),
    ],
)
def test_what_it_may_do_wrong(place: Path, body: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_credential, "LIMIT_S", 1.0 if "sleep" in body else 30.0)
    error = failed(access_of(place, body))
    assert says in error.evidence
    assert error.code == ExitCode.UNREACHABLE


def test_a_program_that_is_not_here(place: Path) -> None:
    access = access_of(place, "", command="gpunode-test-no-such-login")
    assert "a program that is not here: gpunode-test-no-such-login" in failed(access).problem


def test_a_version_that_kubectl_has_dropped(place: Path) -> None:
    access = access_of(place, granted(token=TOKEN), apiVersion="client.authentication.k8s.io/v1alpha1")
    assert "speaks 'client.authentication.k8s.io/v1alpha1'" in failed(access).problem


@pytest.mark.skipif(os.geteuid() != 0, reason="of what root runs")
def test_root_runs_no_program_that_others_may_write(place: Path) -> None:
    access = access_of(place, f"touch {place}/ran\n" + granted(token=TOKEN))
    (place / "login").chmod(0o777)
    error = failed(access)
    assert f"{place}/login can be written by its group" in error.problem
    assert not (place / "ran").exists()
