"""What ends a build."""

from __future__ import annotations


class ReleaseError(Exception):
    """No release comes of it; the message says why, and nothing of it is in dist/."""
