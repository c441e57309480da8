"""Files of a host, as the probe read them and as gpunode left them."""

from __future__ import annotations

from dataclasses import field

from gpunode.regex import regex
from gpunode.values import dataclass

# shell/common.sh (locate) and offline/local_file.py name so what is to become a file.
_CANDIDATE = regex(r"(?:^|/)\.[^/]+\.gpunode(?:-[^/]*)?$")


def is_candidate(path: str) -> bool:
    """Whether it is what a write that was cut off left: nobody's setting, and the next run takes it away."""
    return _CANDIDATE.search(path) is not None


@dataclass(frozen=True)
class FileFacts:
    """One file as the probe read it. An absent file has text None and unread None."""

    path: str
    text: str | None = None  # UTF-8 with surrogateescape, so that odd bytes are kept over a round trip
    sha256: str | None = None  # of the bytes; None when absent or unread
    mode: int | None = None  # permission bits, e.g. 0o644
    symlink: str | None = None  # where the path points when it is a symbolic link
    unread: str | None = None  # why it exists but could not be read: "permission denied", "over 131072 bytes"
    written_at: int | None = field(default=None, compare=False)  # its mtime, in seconds since 1970; None: not known

    @property
    def exists(self) -> bool:
        return self.text is not None or self.unread is not None


@dataclass(frozen=True)
class WrittenFile:
    """What gpunode's journal says of a file that gpunode wrote last, and no undo took back."""

    sha256: str  # as gpunode left it
    before: str  # sha256 from before, or "absent"
    step: str  # "docker.default"
    run: str  # "20261121T151820Z-6283.1"
