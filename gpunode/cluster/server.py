"""An API server, asked by the official client: core/v1 alone, and answers as plain JSON.

Objects are not made into the client's own classes: those want fields that another release's objects do not have.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpunode.cluster.bounded_pool import CALL_S, BoundedPool, patiently
from gpunode.cluster.faults import Unanswered, fault
from gpunode.cluster.identity import node_of
from gpunode.cluster.kubeconfig import Access
from gpunode.cluster.library import official_client
from gpunode.cluster.proxy import proxy_of
from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_json

NAMESPACE = "default"


class Server:
    """Of one context of a kubeconfig, for any number of threads."""

    def __init__(self, access: Access, api: Any) -> None:
        self.address = access.server
        self.node = node_of(access.certificate)  # the node whose own identity asks; None: it is nobody's
        header = access.header.reveal() if access.header else ""
        self._secrets = tuple(word for word in (header, header.partition(" ")[2]) if word)
        self._api = api

    def text(self, what: str, ask: Callable[[Any], Any], limit_s: float = CALL_S) -> str:
        """The body of what `ask` gets of the client's CoreV1Api; `what` it is about, for people.

        Raises Answered where the server refuses, Unanswered where it does not answer.
        """
        try:
            body: bytes = patiently(lambda: ask(self._api).data, limit_s)
        except Exception as error:
            said = fault(error, self.address, what, limit_s, self._secrets)
            if said is None:
                raise
            raise said from None  # what it was raised from may hold headers
        return body.decode("utf-8", "replace")

    def object(self, what: str, ask: Callable[[Any], Any], limit_s: float = CALL_S) -> dict[str, Any]:
        try:
            answer = read_json(self.text(what, ask, limit_s))
        except NotRead as error:
            raise Unanswered(f"{self.address} did not answer with JSON: {what}", evidence=str(error)) from None
        if not isinstance(answer, dict):
            raise Unanswered(f"{self.address} did not answer with an object: {what}")
        return answer


@contextmanager
def open_server(access: Access) -> Iterator[Server]:
    """Nothing is dialled yet. Raises UnsupportedHost without the client, UsageError for keys that are none."""
    client = official_client()
    if access.insecure:  # said by who opens it, once
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    settings = client.Configuration()  # some of its releases set the level of urllib3's log
    logging.getLogger("urllib3").setLevel(logging.CRITICAL + 1)  # on stderr: it warns of its pool, and of more
    settings.host = access.server
    settings.proxy, settings.no_proxy = proxy_of(access, os.environ)
    if access.server_name:
        settings.tls_server_name = access.server_name
    settings.verify_ssl = not access.insecure
    api = _client(client, settings, access)
    api.rest_client.pool_manager.connection_pool_kw["ssl_context"] = _tls(access)
    api.rest_client.pool_manager = BoundedPool(api.rest_client.pool_manager)
    if access.header:
        api.set_default_header("Authorization", access.header.reveal())
    try:
        yield Server(access, client.CoreV1Api(api))
    finally:
        api.close()


def _client(client: Any, settings: Any, access: Access) -> Any:
    """Through the proxy of the kubeconfig, else of the environment. One of another kind takes a further library."""
    if settings.proxy and not settings.proxy.startswith(("http://", "https://")):
        raise _no_proxy(access)
    import urllib3

    try:
        return client.ApiClient(settings)
    except (ValueError, urllib3.exceptions.HTTPError):
        raise _no_proxy(access) from None


def _no_proxy(access: Access) -> UsageError:
    return UsageError(
        f"{access.path}: its cluster cannot be asked through this proxy",
        evidence="proxy-url of the cluster" if access.proxy else "HTTPS_PROXY in the environment",
        remedy="name one whose address begins with http:// or https://",
    )


def _tls(access: Access) -> ssl.SSLContext:
    """Made here: the client would leave the key in /tmp. Old clusters' authorities are taken, as kubectl does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if access.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif access.authority is not None:
            # What stands between the certificates is for people, in any letters; the library takes ASCII alone.
            context.load_verify_locations(cadata=access.authority.encode("ascii", "replace").decode("ascii"))
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError):
        raise _no_key(access, "certificate-authority is no certificate in PEM") from None
    if access.certificate is not None:
        _load(context, access, access.certificate.reveal().encode("ascii", "replace"))
    return context


def _load(context: ssl.SSLContext, access: Access, pem: bytes) -> None:
    """From memory: the library takes a path alone, and a key in a file could be left there."""
    memory = os.memfd_create("client")
    try:
        with os.fdopen(os.dup(memory), "wb") as file:
            file.write(pem)
        context.load_cert_chain(f"/proc/self/fd/{memory}", password=lambda: "")  # else it asks on the terminal
    except (ssl.SSLError, OSError, ValueError):
        raise _no_key(access, "client-certificate and client-key are no certificate with its key, in PEM") from None
    finally:
        os.close(memory)


def _no_key(access: Access, what: str) -> UsageError:
    return UsageError(f"{access.path}: its {what}", remedy="name another kubeconfig with --kubeconfig")
