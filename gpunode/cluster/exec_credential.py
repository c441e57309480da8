"""What a program of a kubeconfig (`exec`) prints: a token or a certificate, by client.authentication.k8s.io.

The program is run as who runs gpunode, with that environment and no terminal: one that has to ask somebody fails. What
it prints is a secret, stderr too: nothing of it is shown.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpunode.advice import named
from gpunode.cluster.kubeconfig import Access, Program
from gpunode.cluster.kubeconfig_fields import VISIBLE
from gpunode.errors import TransportError, UsageError
from gpunode.foreign import NotRead, read_json
from gpunode.site_checks.program import run_program
from gpunode.site_checks.trust import why_mistrusted
from gpunode.transport.secret import Secret

LIMIT_S = 60.0  # a cloud's program asks its cloud first
VERSIONS = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1"))


def with_credentials(access: Access) -> Access:
    """`access` with what its program prints; itself where it names none. Raises UsageError and TransportError."""
    program = access.program
    if program is None:
        return access
    if program.api_version not in VERSIONS:
        raise UsageError(
            f"{access.path}: its exec speaks {program.api_version[:80]!r}",
            evidence=f"supported are {' and '.join(VERSIONS)}",
            remedy="let the cluster's tool write the kubeconfig anew",
        )
    path = _found(access, program)
    variables = {**os.environ, **program.variables, "KUBERNETES_EXEC_INFO": json.dumps(_asked(access, program))}
    ended = run_program((path, *program.words[1:]), limit_s=LIMIT_S, environment=variables)
    if ended.why or ended.code != 0:
        raise _failed(program, ended.why or f"it ended with {ended.code}")
    try:
        answer = read_json(ended.out.decode("utf-8", "surrogateescape"))
    except NotRead:
        raise _failed(program, "it did not print JSON") from None
    return _granted(access, program, answer)


def _found(access: Access, program: Program) -> str:
    path = shutil.which(program.words[0])
    if path is None:
        raise UsageError(
            f"{access.path} gets its token from a program that is not here: {program.words[0][:80]}",
            evidence="exec.command of its user",
            remedy="install it, or name a kubeconfig with a token or a certificate",
        )
    if os.geteuid() == 0 and (why := why_mistrusted(Path(path))):
        raise UsageError(
            f"{access.path} gets its token from {path}, which is not run as root: {why}",
            remedy="run this as the user it belongs to",
        )
    return path


def _asked(access: Access, program: Program) -> Mapping[str, Any]:
    spec: dict[str, Any] = {"interactive": False}
    if program.wants_cluster:
        cluster = {"server": access.server, "insecure-skip-tls-verify": access.insecure}
        spec["cluster"] = {name: value for name, value in cluster.items() if value}
    return {"apiVersion": program.api_version, "kind": "ExecCredential", "spec": spec}


def _granted(access: Access, program: Program, answer: Any) -> Access:
    status = answer.get("status") if isinstance(answer, dict) else None
    status = status if isinstance(status, dict) else {}
    token, certificate, key = (status.get(n) for n in ("token", "clientCertificateData", "clientKeyData"))
    if isinstance(token, str) and VISIBLE.fullmatch(token):
        access = replace(access, header=Secret(f"Bearer {token}"))
    elif token:
        raise _failed(program, "its token is none")
    if isinstance(certificate, str) and isinstance(key, str) and certificate.isascii() and key.isascii():
        access = replace(access, certificate=Secret(f"{certificate}\n{key}\n"))
    if access.header is None and access.certificate is None:
        raise _failed(program, "it printed neither a token nor a certificate with its key")
    return replace(access, program=None)


def _failed(program: Program, why: str) -> TransportError:
    return TransportError(
        f"{named(program.words[0][:200])}, which the kubeconfig runs for a token, gave none",
        evidence=why,
        remedy="run it by hand, with the arguments that the kubeconfig has: it may want a login",
    )
