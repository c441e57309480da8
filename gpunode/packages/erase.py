"""Taking packages back for good: what came along goes too, what others need or edited stays."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.model.plan import Run
from gpunode.packages.apt import ENV, INSTALL_S
from gpunode.packages.base import Backend


def erase(backend: Backend, names: Sequence[str], inventory: str) -> Run:
    """Remove `names` and their configuration; fails (65) when a package that is not gpunode's needs one of them.

    `inventory`: a file on the host with the names of all packages from before, "" when there is none. What is not in
    it, came along and is needed by nothing else goes too. Managers other than apt keep to their own idea of that.
    """
    if backend.name != "apt":
        return backend.remove(names)
    argv = ("sh", "-s", "--", inventory or "-", *names)
    says = f"apt-get remove {' '.join(names)}, and what came with them"
    script = resources.script("packages/apt_erase")
    return Run(argv, timeout_s=INSTALL_S, env=ENV, stdin=script, detach=True, packages=tuple(names), says=says)
