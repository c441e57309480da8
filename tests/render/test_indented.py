from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpunode.render.indented import indented

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_it_is_what_json_writes(value: Any) -> None:
    assert indented(value, "  ") == json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"x": {"y": -float("inf")}}])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(value, "  ")
