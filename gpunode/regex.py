"""Regular expressions that are compiled when they are first used, if they ever are.

`re.compile` at the top of a module is Python code that parses and compiles, 0.3 ms an expression: a check imports two
hundred, and uses half of them. Here the text is only kept.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is 3 ms, and a check has not yet begun to look at its host (cli/start/first_look.py)
if TYPE_CHECKING:
    import re
    from typing import Any, AnyStr

    def regex(text: AnyStr, flags: int | re.RegexFlag = 0) -> re.Pattern[AnyStr]:
        """As `re.compile`, later: re.error is raised by whoever uses it first."""

else:

    class regex:
        """Answers as the compiled expression does, once it is asked for anything."""

        def __init__(self, text: str | bytes, flags: int | re.RegexFlag = 0) -> None:
            self._text, self._flags = text, flags

        def __getattr__(self, name: str) -> Any:
            compiled = self.__dict__.get("_compiled")
            if compiled is None:
                import re  # 3 ms, for the same reason

                compiled = self._compiled = re.compile(self._text, self._flags)
            value = self.__dict__[name] = getattr(compiled, name)
            return value
