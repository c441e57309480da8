"""What stands in an object of the API, whatever somebody put there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 400  # characters of a text


def mapping(value: Any) -> Mapping[str, Any]:
    """Nothing for what is none."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any, most: int) -> list[Any]:
    """The first `most` of it; nothing for what is none."""
    return value[:most] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Cut; "" for what is none."""
    return str(value)[:LONGEST] if isinstance(value, (str, int)) else ""
