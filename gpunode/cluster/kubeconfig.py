"""A kubeconfig that a person named, as the one way into a cluster that it describes.

It is read here and not by the client: that merges what $KUBECONFIG names, opens whatever stands at a path, and leaves
keys in /tmp. A kubeconfig may name a program that is run as whoever reads it: root believes only a file that nobody
else may write. Fields: client-go, tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gpunode.advice import listing, meant
from gpunode.cluster.kubeconfig_fields import EMPTY, FLAG, MOST_BYTES, VISIBLE, Fields, trusted_text
from gpunode.kubernetes.yaml_nodes import Node, read_nodes
from gpunode.regex import regex
from gpunode.transport.secret import Secret
from gpunode.values import dataclass

LONGEST_NAME = 253  # RFC 1035 2.3.4, without the root
_NAME = regex(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*", re.ASCII)
_ADDRESS = regex(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", re.ASCII)  # IPv6; those of IPv4 look like names
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# client-go knows them: another identity than the credentials', or what it has mostly lost in 1.26.
_REFUSED = ("auth-provider", "as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True)
class Program:
    """What prints credentials when it is run (`exec`)."""

    api_version: str  # "client.authentication.k8s.io/v1"
    words: tuple[str, ...]
    variables: Mapping[str, str]
    wants_cluster: bool = False  # provideClusterInfo


@dataclass(frozen=True)
class Access:
    """One context of a kubeconfig."""

    path: Path  # of the kubeconfig
    server: str  # "https://10.0.0.1:6443"
    authority: str | None = None  # PEM; None: what the system trusts
    insecure: bool = False  # whoever answers is believed
    server_name: str | None = None  # in the server's certificate; None: that of its address
    proxy: str | None = None
    header: Secret | None = None  # of Authorization: "Bearer ..."
    certificate: Secret | None = None  # PEM of a client's certificate and its key
    program: Program | None = None  # only where neither of these is there


def read_kubeconfig(path: Path, context: str | None) -> Access:
    """`context`: its name; None: the file's current one. Raises UsageError."""
    root = read_nodes(trusted_text(path), f"{FLAG} {path}", MOST_BYTES) or EMPTY
    return _Reader(path).access(root, context)


class _Reader(Fields):
    """What they mean together."""

    def access(self, root: Node, context: str | None) -> Access:
        root = self.mapping(root, "the file")
        name = context if context is not None else self.text(root, "current-context")
        if not name:
            raise self.fault(
                "it has no current context",
                evidence=f"its contexts are {listing(self.names(root, 'contexts')) or 'none'}",
                remedy="choose one with --context",
            )
        chosen = self.named(root, "contexts", "context", name)
        if chosen is None:
            names = self.names(root, "contexts")
            raise self.fault(
                f"it has no context {name[:80]!r}",
                evidence=f"{meant(name[:80], names)}its contexts are {listing(names) or 'none'}",
                remedy="choose one of them with --context",
            )
        of_cluster, of_user = self.text(chosen, "cluster"), self.text(chosen, "user")
        cluster = self.named(root, "clusters", "cluster", of_cluster)
        if cluster is None:
            raise self.fault(f"it has no cluster {of_cluster[:80]!r}, which its context names")
        user = self.named(root, "users", "user", of_user)
        if user is None and of_user:
            raise self.fault(f"it has no user {of_user[:80]!r}, whom its context names")
        return self.put_together(cluster, user or EMPTY)

    def put_together(self, cluster: Node, user: Node) -> Access:
        if refused := [key for key in _REFUSED if self.of(user, key) is not None]:
            raise self.fault(
                f"its user has {refused[0]}, which is not supported",
                evidence="supported are token, tokenFile, client-certificate, username and password, and exec",
                remedy="name a kubeconfig with one of them",
            )
        insecure = self.switch(cluster, "insecure-skip-tls-verify")
        authority = self.pem(cluster, "certificate-authority")
        if insecure and authority:
            raise self.fault("it has both insecure-skip-tls-verify and a certificate-authority: which of them holds?")
        header, certificate = self.header(user), self.certificate(user)
        program = self.program(user) if header is None and certificate is None else None
        server = self.server(cluster, secret=header is not None or program is not None)
        return Access(
            path=self.path,
            server=server,
            authority=authority,
            insecure=insecure,
            server_name=self.server_name(cluster),
            proxy=self.visible(cluster, "proxy-url"),
            header=header,
            certificate=certificate,
            program=program,
        )

    # --- a cluster and its user

    def server(self, cluster: Node, *, secret: bool) -> str:
        text = self.visible(cluster, "server") or ""
        try:
            parts = urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or parts.scheme not in ("https", "http") or "@" in parts.netloc or parts.query or parts.fragment:
            raise self.fault("its server is no address", evidence="its form is https://HOST:PORT")
        if parts.scheme == "http" and (secret or host not in _LOOPBACK):
            raise self.fault("its server has no TLS", evidence="http:// is for this machine's own, without a token")
        return text.rstrip("/")

    def server_name(self, cluster: Node) -> str | None:
        """Python's TLS raises errors of several kinds for names that none can be."""
        name = self.visible(cluster, "tls-server-name")
        if name and not (len(name) <= LONGEST_NAME and (_NAME.fullmatch(name) or _ADDRESS.fullmatch(name))):
            raise self.fault("its tls-server-name is neither a name nor an address")
        return name

    def header(self, user: Node) -> Secret | None:
        """tokenFile takes precedence over token, as in client-go."""
        if path := self.text(user, "tokenFile"):
            token = self.file(path, "tokenFile").strip()
        else:
            token = self.text(user, "token")
        if token:
            if not VISIBLE.fullmatch(token):
                raise self.fault("its token has blanks or other characters that no token has")
            return Secret(f"Bearer {token}")
        name, password = self.text(user, "username"), self.text(user, "password")
        if not (name or password):
            return None
        pair = f"{name}:{password}".encode()
        return Secret(f"Basic {base64.b64encode(pair).decode('ascii')}")

    def certificate(self, user: Node) -> Secret | None:
        certificate, key = self.pem(user, "client-certificate"), self.pem(user, "client-key")
        if not certificate and not key:
            return None
        if not (certificate and key):
            raise self.fault("its user has only one of client-certificate and client-key")
        return Secret(f"{certificate}\n{key}\n")

    def program(self, user: Node) -> Program | None:
        given = self.of(user, "exec")
        if given is None:
            return None
        given = self.mapping(given, "exec")
        command = self.text(given, "command")
        if not command:
            raise self.fault("its exec has no command")
        if self.text(given, "interactiveMode") == "Always":
            raise self.fault("its exec asks on a terminal (interactiveMode: Always)", evidence="nobody is asked here")
        if "/" in command:
            command = os.path.join(self.path.absolute().parent, command)
        words = [self.scalar(one, "exec.args") for one in self.items(given, "args")]
        pairs = [self.mapping(one, "exec.env") for one in self.items(given, "env")]
        variables = {self.text(one, "name"): self.text(one, "value") for one in pairs}
        if any(not name or "=" in name for name in variables):
            raise self.fault("its exec has a variable without a name")
        return Program(
            self.text(given, "apiVersion"), (command, *words), variables, self.switch(given, "provideClusterInfo")
        )
