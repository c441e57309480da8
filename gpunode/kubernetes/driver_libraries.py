"""Where a host keeps the driver's libraries, for pods of clusters whose kubelet hands over devices alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.errors import UnsupportedHost
from gpunode.kubernetes.pods import Library
from gpunode.model.facts import HostFacts
from gpunode.regex import regex

_SAFE = regex(r"/(?!.*(?:^|/)\.\.(?:/|$))[\w./+-]{1,400}", re.ASCII)
_FOR_32_BITS = ("/lib32/", "/i386-", "/usr/lib/libcuda", "/usr/lib/libnvidia")


def driver_libraries(host: HostFacts) -> Sequence[Library]:
    """The driver's own directory (/usr/lib/nvidia-375, /usr/lib64/nvidia), or each file by itself.

    A directory that it shares with the system is not mounted: its libc would be loaded in front of the image's.
    Raises UnsupportedHost where the loader knows no driver library.
    """
    paths = {soname: _path(found) for soname, found in host.driver.libraries.items()}
    cuda = paths.get("libcuda.so.1")
    if cuda is None:
        raise UnsupportedHost(
            f"{host.target}: where the driver's libraries are is not known",
            evidence=host.unread.get("ldconfig", "ldconfig -p lists no libcuda.so.1"),
            remedy="install the driver first, or name a node that has it with --ssh",
        )
    directory = cuda.rpartition("/")[0]
    if any(part.startswith("nvidia") for part in directory.split("/")):
        return (Library(directory),)
    return tuple(Library(path, soname) for soname, path in sorted(paths.items()) if path)


def _path(found: Sequence[str]) -> str | None:
    """The library for 64 bits, where the path can stand in a manifest."""
    safe = [path for path in found if _SAFE.fullmatch(path)]
    long = [path for path in safe if not any(sign in path for sign in _FOR_32_BITS)]
    return next(iter(long or safe), None)
