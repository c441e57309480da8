"""What the page has of other people's texts."""

from __future__ import annotations

from gpunode.masking import masked
from gpunode.render.check_values import cut
from gpunode.render.clean import clean, clean_line

NAME, CELL, SENTENCE, PROSE = 120, 200, 500, 4000  # characters that the page has of a text


class Texts:
    """Without secrets and control characters, cut; a text that many hosts have is worked on once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], str] = {}

    def line(self, text: str, most: int) -> str:
        if (shown := self._lines.get((text, most))) is None:
            # Masked before it is cut: half a secret is one too.
            whole = masked(text[:PROSE], "lines")
            shown = self._lines[text, most] = cut(clean_line(whole), most)
        return shown

    def prose(self, text: str) -> str:
        return clean(cut(masked(text[: 2 * PROSE], "lines"), PROSE))
