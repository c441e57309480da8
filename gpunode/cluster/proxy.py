"""Through which proxy an API server is asked: kubectl's rules."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from gpunode.cluster.kubeconfig import Access


def proxy_of(access: Access, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(proxy, what goes past it) as kubectl has them, and not as the client's environment has.

    The kubeconfig's own holds whatever NO_PROXY says. Of the environment's, this machine itself is never asked through
    one, `host:port` is http, and ALL_PROXY is not read (golang.org/x/net/http/httpproxy).
    """
    if access.proxy:
        return access.proxy, None
    parts = urlsplit(access.server)
    if _is_loopback(parts.hostname or ""):
        return None, None
    named = f"{parts.scheme}_proxy"
    proxy = environment.get(named.upper()) or environment.get(named)
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    return proxy or None, environment.get("NO_PROXY") or environment.get("no_proxy")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
