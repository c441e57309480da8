"""A configuration as plain values, and when two are the same."""

from __future__ import annotations

import json
from typing import Any

Plain = dict[str, Any]


def same(left: object, right: object) -> bool:
    """Equal in type as well: true is not 1, 1 is not 1.0, and nan is nan."""
    return json.dumps(left, sort_keys=True, default=repr) == json.dumps(right, sort_keys=True, default=repr)
