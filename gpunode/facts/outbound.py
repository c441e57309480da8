"""What the host's way to the outside depends on, from the probe's section `system`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpunode.model.system import NamedProxy, Outbound
from gpunode.regex import regex

PATH = r"/[^:\x00-\x1f\x7f]{1,200}"
_PROXY = regex(rf"proxy=({PATH}):([0-9]{{1,6}}):([A-Za-z0-9._:\[\]-]{{1,260}})", re.A)
_INDIRECT = regex(rf"indirect=({PATH}):[0-9]{{1,6}}", re.A)
_UNSEEN = regex(rf"unseen=({PATH})", re.A)
_RESOLV = regex(r"^resolv=(present|absent|dead)$", re.MULTILINE | re.A)


def parse_outbound(text: str) -> Outbound | None:
    """None for a recording from before it was read.

    resolv=present
    dns=1
    proxy=/etc/environment:3:proxy.example:3128
    indirect=/etc/systemd/system/docker.service.d/proxy.conf:2
    unseen=/etc/apt/apt.conf.d/95proxy
    """
    found = _RESOLV.search(text)
    if found is None:
        return None
    lines = text.splitlines()
    return Outbound(
        proxies=tuple(NamedProxy(m[3], m[1], int(m[2])) for m in _matches(_PROXY, lines)),
        indirect=tuple(m[1] for m in _matches(_INDIRECT, lines)),
        unseen=tuple(m[1] for m in _matches(_UNSEEN, lines)),
        resolv_conf=found[1],
        name_server="dns=1" in lines,
    )


def _matches(pattern: re.Pattern[str], lines: list[str]) -> Iterator[re.Match[str]]:
    return (found for line in lines if (found := pattern.fullmatch(line)))
