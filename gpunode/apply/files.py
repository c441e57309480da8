"""Files on the host, each in one round trip: compare, back up, journal, write next to it, validate, rename, verify."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from gpunode.apply.journal.entries import Journal, Written
from gpunode.apply.paths import STATE, backup_path
from gpunode.apply.reasons import error_summary
from gpunode.apply.script import SHORT_S, Host, parse_reply
from gpunode.errors import Drift, StepFailed
from gpunode.foreign import read_json
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.remedy import AGAIN, Remedy, RepairAction, gpunode
from gpunode.transport.base import Completed


def put_file(host: Host, journal: Journal, step: str, action: PutFile) -> Written | None:
    """Write the file; None when it already held this text (its mtime stays).

    Raises Drift when the file is not what the plan was made from, and StepFailed with the tool's own message when the
    candidate is not valid or the disk refuses. In both cases the file is as it was.
    """
    text = action.text.encode("utf-8", "surrogateescape")
    expect = "any" if action.any_before else action.expect_sha256 or "absent"
    return _change(host, journal, step, action, expect, sha256(text), action.mode, text, action.validate)


def remove_file(host: Host, journal: Journal, step: str, action: RemoveFile) -> Written | None:
    """Remove the file; None when it was not there. Raises as put_file does."""
    return _change(host, journal, step, action, action.expect_sha256 or "any", "absent", 0, b"", None)


def restore(
    host: Host,
    journal: Journal,
    step: str,
    written: Written,
    *,
    own: bool,
    tell: Callable[[str], None] = lambda _: None,
) -> str:
    """Restore one file: "kept" (nothing to do), "restored", or "foreign" (own=False and someone else wrote it since).

    own: this run wrote it, so whatever is there now goes; where that is not ours, `tell` is told where a copy is.
    Raises StepFailed when the old bytes cannot be restored.
    The journal is told afterwards: until then the change stands, so an undo after a power cut restores it.
    """
    done = host.run_or_end(
        "files/restore",
        host.token,
        "1" if own else "0",
        written.path,
        written.before,
        written.after,
        written.mode,
        f"{written.uid}:{written.gid}",
        written.backup,
        str(written.directories),
        written.run_as,
        backup_path(journal.run_id, written.path),
        what=f"restore {written.path}",
        timeout_s=SHORT_S,
    )
    word, copy = parse_reply(done)
    if copy and word == "restored":
        tell(f"{written.path}: what something else wrote to it since is kept in {copy}")
    journal.add("restore", step=step, path=written.path)
    return word


def drifted(expect: str | None, now: str, after: str, any_before: bool) -> bool:
    """Whether a file's hash (or "absent") rules the plan out. A file that already holds the new text does not."""
    return not any_before and now not in (expect or "absent", after)


def drift(target: str, path: str, expect: str | None, now: str) -> Drift:
    return Drift(
        f"{target}: {path} changed since the plan was made",
        evidence=_was(expect, now),
        remedy=Remedy(RepairAction.NONE, gpunode("plan"), " shows what is to be done now"),
    )


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _change(
    host: Host,
    journal: Journal,
    step: str,
    action: PutFile | RemoveFile,
    expect: str,
    after: str,
    mode: int,
    text: bytes,
    validate: Run | None,
) -> Written | None:
    path = action.path
    run_as = {"run_as": action.owner} if action.owner else {}
    entry = journal.head("file", step=step, path=path, after=after, **run_as)
    words, limit_s = _validator(validate, action.owner)
    done = host.run_or_end(
        "files/put",
        host.token,
        journal.pending(),
        entry,
        path,
        expect,
        after,
        f"{mode:o}",
        backup_path(journal.run_id, path),
        *words,
        what=f"write {path}" if after != "absent" else f"remove {path}",
        stdin=text,
        timeout_s=SHORT_S + limit_s,
    )
    word, rest = parse_reply(done)
    if word == "drift":
        raise drift(host.transport.target, path, None if expect in ("any", "absent") else expect, rest)
    journal.delivered()
    if word == "same":
        return None
    if word == "invalid":
        raise _invalid(path, rest, done, validate)
    written = _written(host, path, rest)
    _hold(written, rest, journal.run_id, action, after)
    journal.copy(rest)
    return written


def _written(host: Host, path: str, line: str) -> Written:
    """The journal's line as put.sh wrote and repeated it. Raises StepFailed for an answer in another form."""
    try:
        return Written.from_entry(read_json(line, own=True, undecodable=True))
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise StepFailed(
            f"{host.transport.target}: the answer about {path} makes no sense",
            evidence=f"{line[:120]!r}: {fault}",
            remedy=Remedy(
                RepairAction.WAIT,
                "something else writes to the connection; run ",
                AGAIN,
                " again, it continues from what is there",
            ),
        ) from fault


def _hold(written: Written, line: str, run: str, action: PutFile | RemoveFile, after: str) -> None:
    """The entry must be about the file that was sent: the rollback goes by it, with root's rights.

    Raises StepFailed.
    """
    known = written.before == "absent" or re.fullmatch("[0-9a-f]{64}", written.before)
    old = "" if written.before == "absent" else f"{backup_path(run, action.path)}.{written.before}".removeprefix(STATE)
    found = (written.path, written.after, written.run_as, written.backup.endswith(old), bool(written.backup))
    if not known or found != (action.path, after, action.owner, True, bool(old)):
        raise StepFailed(
            f"the host's answer about {action.path} is about something else",
            evidence=repr(line[:500]),
            remedy="look for what writes to gpunode's answers on that host; the file itself may have been changed",
        )


def _validator(validate: Run | None, owner: str) -> tuple[tuple[str, ...], float]:
    """put.sh's last arguments: limit, accepted codes, stdin, owner, argv (with the env: a validator has no secrets)."""
    if validate is None:
        return ("1", "0", "", owner), 0
    env = ("env", *(f"{name}={value}" for name, value in validate.env)) if validate.env else ()
    codes = " ".join(map(str, validate.ok_codes))
    limit_s = max(1, round(validate.timeout_s))
    return (str(limit_s), codes, validate.stdin, owner, *env, *validate.argv), limit_s


def _invalid(path: str, code: str, done: Completed, validate: Run | None) -> StepFailed:
    output = done.stdout.decode("utf-8", "replace").partition("\n")[2]
    tool = (validate.description or validate.argv[0]) if validate else "the validator"
    return StepFailed(
        f"{tool} refuses the new {path}: {error_summary(output) or f'exit code {code}'}",
        evidence=f"the candidate was checked before the rename; {path} was not touched",
        remedy=Remedy(
            RepairAction.SUPPORT,
            "the new text is in the plan (",
            gpunode("plan"),
            "); report it together with the tool's version",
        ),
    )


def _was(expect: str | None, now: str) -> str:
    """Without the hashes: by that of a file with a short password others could guess it."""
    if now == "absent":
        return "it was there, and is no more"
    return "it holds other bytes than the plan saw" if expect else "it was absent, and is there"
