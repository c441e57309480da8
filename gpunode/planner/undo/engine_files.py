"""One engine's files: restored together, or only freed of gpunode's default while containers use its handler."""

from __future__ import annotations

from dataclasses import replace

from gpunode.engines.base import Engine, Removal
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts
from gpunode.model.past import ABSENT, Past, PastFile
from gpunode.model.plan import Kept
from gpunode.planner.undo.files import Back, rollback
from gpunode.values import dataclass


@dataclass(frozen=True)
class EngineFiles:
    kind: Engine
    files: tuple[PastFile, ...]
    handler: str
    default: str | None  # before the first run; None when it is not known

    @staticmethod
    def of(host: HostFacts, past: Past, label: str, kind: Engine) -> EngineFiles:
        found: dict[str, PastFile] = {}
        for file in past.files:
            if file.for_undo.engine == label:
                now = _where_now(host, file, kind)
                found[now.path] = _over_both(found[now.path], now) if now.path in found else now
        return EngineFiles(kind, tuple(found.values()), past.handler, past.defaults.get(label))

    def rolled_back(self, *, keep_handler: bool = False) -> list[Back | Kept | None]:
        """What to do about each. `keep_handler`: where gpunode added it, all that goes is the default."""
        if keep_handler and any(map(self._has_handler, self.files)):
            return [self._without_default(file) for file in self.files]
        gone = self._gone()
        return [self._restored(file, gone) for file in self.files]

    def _restored(self, file: PastFile, gone: tuple[str, ...] = ()) -> Back | Kept | None:
        before = "" if file.before == ABSENT else file.old
        removal = Removal(self.handler, self.default, before, gone)
        return rollback(file, lambda text: self.kind.without(file.path, text, removal))

    def _gone(self) -> tuple[str, ...]:
        """Files of gpunode's own that are removed: nothing may import them."""
        own = [file for file in self.files if file.before == ABSENT]
        found = [(file.path, self._restored(file)) for file in own]
        return tuple(path for path, back in found if isinstance(back, Back) and back.text is None)

    def _has_handler(self, file: PastFile) -> bool:
        """Whether the file has it now, and had not before gpunode."""
        return self._names_handler(file, file.now.text) and not self._names_handler(file, file.old)

    def _names_handler(self, file: PastFile, text: str | None) -> bool:
        if not text:
            return False
        removal = Removal(self.handler)
        try:
            every = self.kind.without(file.path, text, removal)
            return every != self._default_removed(file, text, removal)
        except ConfigFileError:
            return False  # what is wrong with it is said where it is to be restored

    def _default_removed(self, file: PastFile, text: str, removal: Removal) -> str:
        only = Removal(removal.handler, removal.default, removal.before, keep_handler=True)
        return self.kind.without(file.path, text, only)

    def _without_default(self, file: PastFile) -> Back | Kept | None:
        now = file.now.text
        if now is None or file.sha256_now == file.before:
            return None
        before = "" if file.before == ABSENT else file.old
        try:
            text = self._default_removed(file, now, Removal(self.handler, self.default, before))
        except ConfigFileError:
            return self._restored(file)
        return Back(file, text, edited=True, still=self.handler) if text != now else None


def _where_now(host: HostFacts, file: PastFile, kind: Engine) -> PastFile:
    """The file as the engine reads it now, where gpunode wrote it by a path that an upgrade has left behind."""
    now = host.file(kind.lasting(file.path))
    return file if now.path == file.path or not now.exists else replace(file, path=now.path, now=now)


def _over_both(first: PastFile, last: PastFile) -> PastFile:
    """One file that gpunode wrote by two paths, the older of which an upgrade has left behind."""
    return replace(first, expected=last.expected if last.before == first.expected else None)
