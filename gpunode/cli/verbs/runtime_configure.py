"""What `runtime configure` does with its arguments: plan one file, print it or write it, say which."""

from __future__ import annotations

import os
import re
import time

from gpunode.advice import meant
from gpunode.cli.errors import say
from gpunode.cli.options.groups import QuietOptions
from gpunode.cli.output import deliver, is_terminal, to_file, to_stdout
from gpunode.cli.results import Configured, choose, show_result
from gpunode.editing.diff import unified
from gpunode.engines.base import Edit
from gpunode.engines.registry import ENGINES
from gpunode.errors import ExitCode, GpunodeError, UsageError
from gpunode.masking import form_of, masked
from gpunode.model.spec import HANDLER_FORMS, HANDLER_NAME, TOOLKIT, RuntimeSpec, Spec
from gpunode.offline import local_file
from gpunode.offline.engine_file import Disk, OneFile, Where, listed, plan_one
from gpunode.offline.local_file import Before
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.encode import dumps
from gpunode.render.style import Style
from gpunode.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The command line, word for word."""

    runtime: str
    config: str | None
    root: str
    default: bool
    cdi: bool
    name: str
    path: str
    daemon_version: str | None
    schema: str | None
    drop_in: str | None
    settings: tuple[str, ...]
    backup: bool
    dry_run: bool
    diff: bool


def run(wish: Wish, output: QuietOptions) -> int:
    """Raises UsageError, UnsupportedHost, ConfigFileError and Drift; in each case no file was changed."""
    form = choose(output, Configured)
    planned = _toolkit(wish) if wish.runtime == TOOLKIT else _engine(wish)
    backups = {} if wish.dry_run else _write(planned, wish.backup)
    if form == "text" and wish.dry_run and not wish.diff:
        _print_exactly(planned, output)
    else:
        show_result(Configured(wish, planned, backups), output)
    if not output.quiet:
        _say(wish, planned, backups, printed=form == "text" and not wish.dry_run)
    return int(ExitCode.DONE)


def _engine(wish: Wish) -> OneFile:
    if wish.runtime not in ENGINES:
        raise UsageError(
            f"{wish.runtime!r} is not a runtime gpunode configures",
            evidence=f"{meant(wish.runtime, (*ENGINES, TOOLKIT))}it configures {', '.join((*ENGINES, TOOLKIT))}",
            remedy="name one of them",
        )
    if wish.settings:
        raise UsageError(
            "--ctk-set is for the toolkit's own file",
            remedy=Remedy(RepairAction.NONE, gpunode("runtime configure", TOOLKIT, ssh=False)),
        )
    if wish.drop_in is not None and not ENGINES[wish.runtime].takes_drop_in:
        whose = listed(one for one in ENGINES.values() if one.takes_drop_in)
        raise UsageError(f"--drop-in is for {whose}", remedy="leave it out")
    want = RuntimeSpec(
        default=wish.default,
        cdi=wish.cdi,
        handler=_matching("--name", wish.name, HANDLER_NAME, HANDLER_FORMS, RuntimeSpec().handler),
        path=_matching("--path", wish.path, r"/\S+", "an absolute path", "") or None,
        drop_in=_drop_in(wish.drop_in),
    )
    version = wish.daemon_version
    if version is not None:
        version = _matching("--daemon-version", version, r"v?\d+\.\d+(\.\d+)?\S*", "a version such as 1.7.24", "")
    schema = _matching("--config-schema", wish.schema or "", r"\d", "a number, 1 to 4", "")
    return plan_one(wish.runtime, Where(wish.config, _root(wish), version or None, int(schema or 0) or None), want)


def _root(wish: Wish) -> str:
    """The image's directory; "" for this machine. Raises UsageError where it is no directory."""
    if wish.root and not os.path.isdir(wish.root):
        raise UsageError(f"--root {wish.root} is not a directory", remedy="name the directory an image is mounted on")
    return "" if os.path.realpath(wish.root or "/") == "/" else wish.root


def _toolkit(wish: Wish) -> OneFile:
    """The toolkit's own config.toml."""
    from gpunode.cli.options.spec import ctk_texts
    from gpunode.engines import toolkit_config
    from gpunode.model.spec import TOOLKIT_CONFIG
    from gpunode.specfile import put_all

    odd = [flag for flag, typed in _flags_of_engines(wish) if typed]
    if odd:
        raise UsageError(f"{odd[0]} is for engines, not for {TOOLKIT}", remedy="its settings are --ctk-set KEY=VALUE")
    if not wish.settings:
        raise UsageError(
            f"{TOOLKIT} needs at least one --ctk-set KEY=VALUE", remedy="for example --ctk-set no-cgroups=true"
        )
    spec = put_all(Spec(), ctk_texts(wish.settings))
    disk, path = Disk(_root(wish)), os.path.abspath(wish.config or TOOLKIT_CONFIG)
    with disk.own_words():
        rewrite = toolkit_config.rewrite(disk.read(path), spec.toolkit_config)
    edits = tuple(edit._replace(path=disk.real(path)) for edit in rewrite.edits)
    return OneFile(rewrite._replace(edits=edits), {disk.real(path): disk.before(path)}, "")


def _flags_of_engines(wish: Wish) -> tuple[tuple[str, bool], ...]:
    return (
        ("--no-set-as-default", not wish.default),
        ("--cdi", wish.cdi),
        ("--name", bool(wish.name)),
        ("--path", bool(wish.path)),
        ("--daemon-version", wish.daemon_version is not None),
        ("--config-schema", wish.schema is not None),
        ("--drop-in", wish.drop_in is not None),
    )


def _matching(flag: str, text: str, pattern: str, forms: str, otherwise: str) -> str:
    if not text:
        return otherwise
    if re.fullmatch(pattern, text):
        return text
    raise UsageError(f"{flag} {text!r} is not of the right form", evidence=f"it is {forms}", remedy=f"correct {flag}")


def _drop_in(text: str | None) -> str | None:
    return text if text in (None, "none") else os.path.abspath(os.path.expanduser(str(text)))


def _write(planned: OneFile, keep: bool) -> dict[str, str]:
    """Write what changed, in order; returns the copies that were kept. A failure restores what was written before."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    backups: dict[str, str] = {}
    done: list[Before] = []
    try:
        for edit in planned.rewrite.edits:
            if not edit.changed:
                continue
            before = planned.before[edit.path]
            if keep and (kept := local_file.back_up(before, stamp)):
                backups[edit.path] = kept
            local_file.replace(before, edit.after, mode=edit.mode)
            done.append(before)
    except GpunodeError:
        for before in reversed(done):
            local_file.restore(before)
        raise
    return backups


def page(result: Configured, style: Style) -> str:
    return "\n".join((_differences if result.wish.diff else _words)(result.wish, result.planned))


def json_whole(result: Configured, style: Style) -> str:
    return dumps(_data(result.wish, result.planned, result.backups))


def json_line(result: Configured, style: Style) -> str:
    return dumps(_data(result.wish, result.planned, result.backups), indent=None)


def _word(edit: Edit) -> str:
    return "changed" if edit.changed else "unchanged"


def _differences(wish: Wish, planned: OneFile) -> list[str]:
    lines = [difference for edit in planned.rewrite.edits if (difference := _difference(edit))]
    return lines if wish.dry_run else [*lines, *_words(wish, planned)]


def _words(wish: Wish, planned: OneFile) -> list[str]:
    """A line for each file; an engine that needs no file at all is unchanged by its name."""
    return [f"{_word(edit)} {edit.path}" for edit in planned.rewrite.edits] or [f"unchanged {wish.runtime}"]


def _difference(edit: Edit) -> str:
    return unified(edit.path, edit.before, edit.after)


def _print_exactly(planned: OneFile, output: QuietOptions) -> None:
    """The new text to the byte, for a pipe; with several files, each that changes below its name. A terminal gets it
    cleaned, as it gets all text that others wrote.
    """
    edits = [e for e in planned.rewrite.edits if e.changed] or list(planned.rewrite.edits[:1])
    text = "".join(edit.after for edit in edits[:1])
    if len(edits) > 1:
        text = "\n".join(f"==> {edit.path} <==\n{edit.after}" for edit in edits)
    if output.output:
        to_file(output.output, text, "--output")
        return
    if is_terminal():
        deliver(text, output)
    else:
        to_stdout(text.encode("utf-8", "surrogateescape"))


def _data(wish: Wish, planned: OneFile, backups: dict[str, str]) -> dict[str, object]:
    rewrite = planned.rewrite
    return {
        "schema": "gpunode.runtime-configure/1",
        "runtime": wish.runtime,
        "daemon_version": planned.daemon or None,
        "changed": rewrite.changed,
        "dry_run": wish.dry_run,
        "needs_restart": rewrite.needs_restart,
        "files": [_file(edit, wish, backups) for edit in rewrite.edits],
        "additions": rewrite.added,
        "notes": (*rewrite.notes, *planned.notes),
    }


def _file(edit: Edit, wish: Wish, backups: dict[str, str]) -> dict[str, object]:
    data: dict[str, object] = {
        "path": edit.path,
        "changed": edit.changed,
        "created": edit.changed and edit.before is None,
        "backup": backups.get(edit.path),
    }
    if wish.dry_run:
        data["text"] = masked(edit.after, form_of(edit.path))
    if wish.diff:
        data["diff"] = _difference(edit)
    return data


def _say(wish: Wish, planned: OneFile, backups: dict[str, str], *, printed: bool) -> None:
    """On stderr: what changed, what to know about it, and which daemon was not reloaded yet."""
    rewrite = planned.rewrite
    lines = [] if printed else [f"{'would be ' if wish.dry_run else ''}{_word(e)} {e.path}" for e in rewrite.edits]
    lines += rewrite.added if rewrite.changed else ()
    lines += rewrite.notes if rewrite.changed or not rewrite.edits else ()
    lines += planned.notes
    lines += [f"the old {path} is kept in {kept}" for path, kept in backups.items()]
    if rewrite.changed and not (wish.dry_run or wish.root):
        lines += _next(wish.runtime, rewrite.main.path, restart=rewrite.needs_restart)
    for line in lines:
        say(f"  {line}")


def _next(runtime: str, path: str, *, restart: bool) -> tuple[str, ...]:
    """What makes the engine read it: commands to run. In an image no daemon runs."""
    if runtime == TOOLKIT:
        return ("it is read whenever a container starts: nothing needs a restart",)
    return ENGINES[runtime].next_words(path, restart=restart)
