"""POSIX sh of an export: values first, each quoted, then the scripts that read them."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping

from gpunode import resources
from gpunode.export.files import Request

NO_CHOICES = "# gpunode's own choices\n"


def host_script(request: Request, state: str, *names: str, head: str, **values: str) -> str:
    """A whole script: `#!/bin/sh`, `head` as a comment, values, shell/export/bring.sh and then shell/export/NAME.sh.

    `state` is the directory on the host that keeps gpunode and the spec; `values` become upper-case variables.
    """
    carried = request.carried
    known = {
        "STATE": state,
        "SHA256": carried.sha256,
        "SIZE": str(len(carried.zipapp)),
        "URL": carried.url or "",
        "AT": carried.path or "",
        "WORDS": shlex.join(request.words),
        **{name.upper(): value for name, value in values.items()},
    }
    return _joined(head, known, *("bring", *names))


def image_spec(request: Request) -> str:
    """The spec as a file of an image's build, which is there even where nothing was chosen."""
    return request.spec or NO_CHOICES


def image_script(request: Request, state: str, at: str, *, head: str) -> str:
    """shell/export/image.sh with its values; `at`: where the build has image_spec."""
    data = image_spec(request).encode()
    digest, size = hashlib.sha256(data).hexdigest(), str(len(data))
    return host_script(request, state, "image", head=head, spec=at, spec_sha256=digest, spec_size=size)


def pod_script(head: str, **values: str) -> str:
    """shell/export/pod.sh with its values."""
    return _joined(head, {name.upper(): value for name, value in values.items()}, "on_host", "pod")


def nodewright_script(head: str) -> str:
    """shell/export/nodewright.sh."""
    return _joined(head, {}, "on_host", "nodewright")


def _joined(head: str, values: Mapping[str, str], *names: str) -> str:
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    return "\n".join(["#!/bin/sh", f"# {head}", *lines, *(resources.script(f"export/{name}") for name in names)])
