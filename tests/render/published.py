"""The schema that docs/reference/json.md publishes, and what of a document is not as it says."""

from __future__ import annotations

import json
from pathlib import Path

from tests.render.validate import faults

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
PUBLISHED = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])


def wrong(text: str, name: str) -> list[str]:
    """`name` is "plan-result" for what `gpunode plan --json` prints, "plan-line" for a line of jsonl."""
    return list(faults(json.loads(text), PUBLISHED["$defs"][name], PUBLISHED))
