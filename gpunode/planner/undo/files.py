"""One file of the past: restored, freed of gpunode's lines, removed, or not changed with the commands to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from posixpath import dirname

from gpunode.advice import by_user, named, typed
from gpunode.editing.diff import unified
from gpunode.engines.daemon.commands import by
from gpunode.errors import ConfigFileError
from gpunode.model.action import Action, PutFile, RemoveFile, Run
from gpunode.model.past import ABSENT, PastFile
from gpunode.model.plan import Kept
from gpunode.values import dataclass

# The text without gpunode's part, "" when nothing is left. Raises ConfigFileError.
Without = Callable[[str], str]


@dataclass(frozen=True)
class Back:
    """A file that changes: `text` is what it will contain, None when it is removed."""

    file: PastFile
    text: str | None
    edited: bool  # others wrote to it since: only gpunode's part is removed
    still: str = ""  # the handler that remains in it, for containers that use it; "": none

    @property
    def changes(self) -> bool:
        """False where the file is gone already, and only the empty directory above it is left."""
        return self.text is not None or self.file.now.sha256 is not None

    @property
    def diff(self) -> str:
        return unified(self.file.path, self.file.now.text, self.text or "")

    def actions(self, validate: Run | None = None) -> tuple[Action, ...]:
        """`validate` checks a text that has never been in force; the old bytes are restored as they were."""
        if not self.changes:
            return ()
        if self.text is None:
            return (RemoveFile(self.file.path, expect_sha256=self.file.now.sha256, owner=self.file.run_as),)
        put = PutFile(
            self.file.path,
            self.text,
            mode=self.file.mode,
            expect_sha256=self.file.now.sha256,
            validate=validate if self.edited else None,
            owner=self.file.run_as,
        )
        made_anew = self.file.now.sha256 is None and self.file.owner != "0:0" and not self.file.run_as
        return (put, Run(("chown", self.file.owner, self.file.path))) if made_anew else (put,)

    def tidy(self) -> tuple[Action, ...]:
        """Remove the directories that gpunode made above the file, where nothing else is in them."""
        if self.text is not None:
            return ()
        made, directory = [], dirname(self.file.path)
        for _ in range(self.file.directories):
            made.append(directory)
            directory = dirname(directory)
        description = f"remove {' and '.join(made)}, unless something is in it"
        run = Run(("rmdir", *made), ok_codes=(0, 1), timeout_s=30, description=description)
        return (by(self.file.run_as, run),) if made else ()

    @property
    def words(self) -> str:
        """For the step's title."""
        if self.text is None:
            return f"remove {self.file.path if self.changes else f'the empty {dirname(self.file.path)}'}"
        if self.still:
            return (
                f"{self.file.path}: {self.still} is no longer the default, and remains for the containers that use it"
            )
        return f"{self.file.path}: " + ("without gpunode's part" if self.edited else "restored")


def rollback(file: PastFile, without: Without | None = None) -> Back | Kept | None:
    """What to do about the file; None when it is restored already. Kept: why it is not, with the commands to run.

    `without`: how to remove gpunode's part from a file that others wrote to, where there is such a way.
    """
    if file.now.unread is not None:
        return Kept(file.path, f"{file.path} cannot be read ({file.now.unread}), so it is not changed")
    if file.interim is not None:
        return Back(file, file.interim.text, edited=(file.interim.sha256 or ABSENT) != file.before)
    if file.sha256_now == file.before:
        return Back(file, None, edited=False) if file.directories else None
    if file.sha256_now == file.expected and (file.before == ABSENT or file.old is not None):
        return Back(file, file.old, edited=False)
    if file.now.sha256 is None:
        return Kept(file.path, f"{file.path} was removed by something else since: {commands_to_run(file)}")
    if without is None:
        return Kept(file.path, f"{_reason(file)}, so it is not changed: {commands_to_run(file)}")
    return _freed(file, without)


def _freed(file: PastFile, without: Without) -> Back | Kept | None:
    now = file.now.text or ""
    try:
        text = without(now)
    except ConfigFileError as error:
        return Kept(file.path, f"{error.problem}, so {file.path} is not changed: {commands_to_run(file)}")
    if text == now:
        return None  # gpunode's part is removed from it already
    return Back(file, None if not text and file.before == ABSENT else text, edited=True)


def _reason(file: PastFile) -> str:
    if file.sha256_now == file.expected:
        return f"{file.path}: the backup of its old bytes, {file.backup}, is gone"
    return f"{file.path} was changed by something else since"


def commands_to_run(file: PastFile) -> str:
    """What restores the file manually, whoever wrote to it since.

    Never `cp` or `rm` with root's rights by a path that is a user's to change, or that has become a link: root would
    write, or remove, what the link leads to.
    """
    path, kept = named(file.path), named(file.backup)
    user = file.run_as or (file.owner if file.owner.partition(":")[0] != "0" else "")
    if file.before == ABSENT:
        return f"{by_user(user, 'rm', file.path)} removes it"
    if file.old is None:
        return f"edit it manually as user {user.partition(':')[0]}" if user else "edit it manually"
    if user:
        return f"its old bytes are in {kept}: let user {user.partition(':')[0]} put them into {path}, and not root"
    if file.now.symlink:
        return f"it is a link to {named(file.now.symlink)} now: see whose that is first; its old bytes are in {kept}"
    return f"{typed('cp', file.backup, file.path)} restores the old one"


def only_backs(found: Sequence[Back | Kept | None]) -> tuple[Back, ...]:
    return tuple(f for f in found if isinstance(f, Back))


def only_left(found: Sequence[Back | Kept | None]) -> tuple[Kept, ...]:
    return tuple(f for f in found if isinstance(f, Kept))


def diffs(backs: Sequence[Back]) -> str:
    return "\n".join(back.diff for back in backs)
