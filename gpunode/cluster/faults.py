"""What kept an API server from answering, as one error of gpunode's: what, how we know, what now.

A server's own words are quoted, shortened, and without what was sent to it as a secret.
"""

from __future__ import annotations

import re
import ssl
from typing import Any

from gpunode.cluster.bounded_pool import MOST_BYTES, Overlong, Refused, Unreached
from gpunode.errors import GpunodeError, TransportError
from gpunode.foreign import NotRead, read_json

LONGEST = 400
_REMEDIES = {
    401: "its token or certificate may be over: get a new kubeconfig",
    403: "name the kubeconfig of somebody who may",
    429: "wait, then try again",
}
_MEANS = {401: "does not know who asks", 403: "does not allow it", 429: "is too busy"}


class Answered(TransportError):
    """The server answered, and refused: `status` is HTTP's, `says` its own words."""

    def __init__(self, server: str, what: str, status: int, says: str) -> None:
        means = _MEANS.get(status, "is not well" if status >= 500 else "refuses it")
        super().__init__(
            f"{server} {means}: {what}",
            evidence=f"{status}{f' {says}' if says else ''}",
            remedy=_REMEDIES.get(status, "kubectl with the same kubeconfig shows more"),
        )
        self.status = status
        self.says = says


class Unanswered(TransportError):
    """Nobody can say whether the server did what it was asked for."""


def fault(error: Exception, server: str, what: str, limit_s: float, secrets: tuple[str, ...]) -> GpunodeError | None:
    """None for an error that is a fault of ours."""
    if isinstance(error, Refused):
        return Answered(server, what, error.status, _words(error.body, secrets))
    if isinstance(error, Overlong):
        return Unanswered(f"{server} answers too much: {what}", evidence=f"it is over {MOST_BYTES} bytes")
    if isinstance(error, TimeoutError):
        return Unanswered(
            f"{server} did not answer within {limit_s:.0f} s: {what}", remedy="look whether the server is reachable"
        )
    if not isinstance(error, Unreached):
        return None
    if certificate := _certificate(error.error):
        return Unanswered(
            f"{server} could not be asked: its certificate is not accepted",
            evidence=_without(certificate, secrets),
            remedy="the kubeconfig's certificate-authority has to be the one of this server",
        )
    return Unanswered(
        f"{server} could not be asked: {what}",
        evidence=_cause(error.error, secrets),
        remedy="look whether the server is reachable from here",
    )


def _words(body: bytes, secrets: tuple[str, ...]) -> str:
    """The message of a Status object; else the first line of what came."""
    text = body.decode("utf-8", "replace")
    try:
        status: Any = read_json(text)
    except NotRead:
        status = None
    message = status.get("message") if isinstance(status, dict) else None
    return _first_line(message if isinstance(message, str) else text, secrets)


def _first_line(text: str, secrets: tuple[str, ...]) -> str:
    """Cut last: half a secret is found by nobody."""
    lines = _without(text, secrets).strip().splitlines()
    return lines[0][:LONGEST] if lines else ""


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "...")
    return text


def _certificate(error: BaseException) -> str:
    """What is wrong with the server's certificate, in OpenSSL's words; "" where it is something else."""
    seen: BaseException | None = error
    for _ in range(8):
        if isinstance(seen, ssl.SSLCertVerificationError):
            return seen.verify_message
        inner = seen.args[0] if seen is not None and seen.args and isinstance(seen.args[0], BaseException) else None
        seen = inner or (seen and (seen.__cause__ or seen.__context__))
    return ""


def _cause(error: BaseException, secrets: tuple[str, ...]) -> str:
    """The first line of it, without the library's object in front: "HTTPSConnection(host='gpu', port=1): "."""
    text = re.sub(r"^(<[^>]*>|\w+\([^)]*\)): ", "", str(error).strip())
    return _first_line(text, secrets) or type(error).__name__
