"""The fleet's page: one HTML file that needs no network, and in which nothing that a host said is markup.

Hosts are data: a JSON block that no browser runs, from which the page's own script makes text nodes. The policy in its
head (Content Security Policy Level 3) allows that script and that style by their hashes, nothing from anywhere else,
and no text that becomes markup (Trusted Types).
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from types import MappingProxyType

from gpunode import __version__, resources
from gpunode.model.report import HostOutcome
from gpunode.regex import regex
from gpunode.render.encode import dumps
from gpunode.render.matrix.table import Sights, table
from gpunode.render.wording import seconds

STYLE = "fleet/matrix.css"
SCRIPT = tuple(f"fleet/{name}.js" for name in ("state", "order", "rows", "host", "controls", "start"))
# Inside a script element "</script" ends it and "<!--" begins a state of its own (HTML, 13.2.5.15); & is for readers
# that take the page for XML. JSON reads the escapes as the characters.
_MARKUP = regex("[<>&]")
# All of the page is ASCII: what stdout's encoding lacks would become question marks, and another script than its hash.
_BEYOND_ASCII = regex("[^\x00-\x7f]")


def matrix_html(
    outcomes: Sequence[HostOutcome],
    sights: Sights = MappingProxyType({}),
    *,
    at_s: float,
    seconds_s: float,
    ssh: bool,
) -> str:
    """The page. `at_s`: when the checks ended, in seconds since the epoch; `seconds_s`: how long they took.

    `sights`: of hosts whose facts are no longer held.
    """
    data = {
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at_s)),
        "took": seconds(seconds_s),
        "version": __version__,
        **table(outcomes, sights, at_s=at_s, ssh=ssh),
    }
    style = resources.template_text(STYLE)
    script = _escaped("\n".join(('(() => {\n"use strict";', *map(resources.template_text, SCRIPT), "})();")))
    return resources.render(
        "fleet/matrix.html.j2",
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=in_script(dumps(data, indent=None)),
    )


def _escaped(text: str) -> str:
    """JSON, or a script that has such characters in strings and comments alone: \\u25c6, and pairs beyond U+FFFF."""
    return _BEYOND_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _hash(text: str) -> str:
    """As a policy's source says it: sha256-..."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def in_script(json_text: str) -> str:
    """The same JSON without what HTML would read inside a script element."""
    return _escaped(_MARKUP.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text))
