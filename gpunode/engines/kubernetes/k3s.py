"""k3s and rke2: `default-runtime` in their own config, never the containerd config they write at every start.

They look for nvidia-container-runtime in PATH when they start and add the handler `nvidia` themselves; what the user
decides is only whether it is the default. A later file of config.yaml.d wins over an earlier one and over
config.yaml, and the command line wins over all files (docs.k3s.io/installation/configuration).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from posixpath import basename, dirname, normpath

from gpunode.advice import named
from gpunode.catalog.runtimes import kubernetes_distribution, merged_by_rancher
from gpunode.catalog.versions import first_with
from gpunode.editing.unread import refuse_unread
from gpunode.engines import drop_ins
from gpunode.engines.base import Edit, Removal, Rewrite
from gpunode.engines.kubernetes import embedded
from gpunode.engines.provenance import BUILT_IN, DEFAULT, Origin, flags_of, in_file, there
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.regex import regex
from gpunode.resources import render

HANDLER, PROGRAM = "nvidia", "nvidia-container-runtime"
KEY = "default-runtime"
DROP_IN = "config.yaml.d/99-gpunode.yaml"
# A top-level key in block style, as these files are written; the value with its quotes, without a comment.
_LINE = regex(
    rf"^(?P<head>[\"']?{KEY}[\"']?[ \t]*:[ \t]*)"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s#]+(?:[ \t]+[^\s#]+)*|)"
    r"(?P<rest>[ \t]*(?:#[^\n]*)?\r?)$",
    re.MULTILINE,
)
_BASE = regex(r"\{\{-?\s*template\s+\"base\"")


class K3s(embedded.Distribution):
    """k3s; rke2 is the same code with its own directories."""

    title = "restart, pods keep running"
    default_key = KEY

    def __init__(self, name: str = "k3s") -> None:
        self.name = name

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        embedded.refuse_too_old(engine)
        _refuse_other_names(engine, want)
        directory = kubernetes_distribution(self.name).reads
        files = _files(host, directory)
        if not want.default:
            note = f"{self.name} adds the handler {HANDLER} by itself when it starts and finds {PROGRAM}"
            return _unchanged(host.file(f"{directory}/{DROP_IN}"), note)
        _refuse_flag(engine)
        if (elsewhere := _other_config(engine, directory)) is not None:
            _refuse_elsewhere(engine, elsewhere, directory)
            return _unchanged(host.file(f"{directory}/{DROP_IN}"))
        notes = _template_note(host, engine)
        found = [(file, value) for file in files if (value := default_runtime(file.path, file.text or "")) is not None]
        if found and found[-1][1] == HANDLER:
            return _unchanged(found[-1][0], *notes)
        merged = tuple(file for file, _ in found if dirname(file.path).endswith(".d"))
        path = drop_ins.path_to_write(merged, f"{directory}/{DROP_IN}", lambda f: f.path.endswith("gpunode.yaml"))
        file = host.file(path)
        after = _with_default(file) if file.text else render("engines/k3s.yaml.j2", handler=HANDLER)
        before = found[-1][1] if found else engine.effective_default or "runc"
        # With a default that k3s cannot find in PATH, containerd's CRI does not load.
        return Rewrite(
            (Edit(path, file.text, after),),
            (f"{KEY} {before} → {HANDLER}{_over(found, path)}",),
            (*_conflict(found, path), *notes),
            binaries=(PROGRAM,),
        )

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        return None  # YAML of one line; what it names is looked for before it is written

    def without(self, path: str, text: str, removal: Removal) -> str:
        old = removal.before
        left = removed(text, removal.handler, default_runtime(path, old) if old else None, path=path)
        says = any(line.strip() and not line.lstrip().startswith("#") for line in left.splitlines())
        return left if old or says else ""

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return tuple(_origins(there(host, engine), engine))


def _origins(files: list[FileFacts], engine: RuntimeFacts) -> Iterator[Origin]:
    found: Origin | None = None
    for file in files:
        for number, line in enumerate((file.text or "").splitlines(), 1):
            match = re.match(r"[\"']?default-runtime[\"']?\s*:\s*[\"']?([^\s\"'#]+)", line)
            if match:
                found = in_file(DEFAULT, match[1], file, number)
    flags = flags_of(engine.distribution_flags)
    if KEY in flags:
        found = Origin(DEFAULT, flags[KEY][-1], "flag")
    yield found or Origin(DEFAULT, engine.effective_default or "runc", BUILT_IN)
    for handler in engine.handlers:
        yield Origin(f"handler {handler}", "", BUILT_IN)


def default_runtime(path: str, text: str) -> str | None:
    """The file's default-runtime; None when it sets none. Raises ConfigFileError where it is set in another way."""
    found = list(_LINE.finditer(text))
    if len(found) == 1:
        return found[0]["value"].strip("\"'").strip() or None
    active = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    at = next((n for n, line in enumerate(active, 1) if re.search(rf"\b{KEY}\b[\"']?\s*\+?:", line)), None)
    if at is None and not found:
        return None
    raise ConfigFileError(
        f"{path}: {KEY} is {'set more than once' if found else 'not a line of its own at the margin'}",
        evidence="gpunode reads it as `default-runtime: NAME`, once; the file was not touched",
        remedy=f"write it as one such line, or take it out of {named(path)}, and run gpunode again",
    )


def removed(text: str, handler: str, previous_default: str | None, *, path: str = "config.yaml") -> str:
    """`text` without `default-runtime: handler`, or with the previous default instead. Another value is unchanged."""
    if default_runtime(path, text) != handler:
        return text
    if previous_default is not None:
        return _LINE.sub(lambda m: f"{m['head']}{previous_default}{m['rest']}", text)
    return "".join(line for line in text.splitlines(keepends=True) if not _LINE.match(line))


def _unchanged(file: FileFacts, *notes: str) -> Rewrite:
    return Rewrite((Edit(file.path, file.text, file.text or ""),), (), notes)


def _files(host: HostFacts, directory: str) -> tuple[FileFacts, ...]:
    """In the order in which they are read. Raises ConfigFileError for one that cannot be read."""
    here = (file for path, file in host.files.items() if file.exists and merged_by_rancher(directory, path))
    found = tuple(sorted(here, key=lambda file: file.path.split("/")))
    for file in found:
        refuse_unread(file.path, file.unread)
    return found


def _with_default(file: FileFacts) -> str:
    """A drop-in that is there already, with its line changed or added."""
    text = file.text or ""
    if default_runtime(file.path, text) is not None:
        return _LINE.sub(lambda m: f"{m['head']}{HANDLER}{m['rest']}", text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith("\n") else newline
    return f"{text}{gap}{KEY}: {HANDLER}{newline}"


def _over(found: list[tuple[FileFacts, str]], path: str) -> str:
    """For the plan's line: which files of the admin's set something else."""
    others = [basename(file.path) for file, value in found if file.path != path and value != HANDLER]
    return f" (over {' and '.join(others)}, not changed)" if others else ""


def _conflict(found: list[tuple[FileFacts, str]], path: str) -> tuple[str, ...]:
    others = [f"{file.path} sets {KEY}: {value}" for file, value in found if file.path != path]
    own = basename(path)
    return tuple(f"{other} and is not changed; {own} is read after it and takes precedence" for other in others)


def _refuse_other_names(engine: RuntimeFacts, want: RuntimeSpec) -> None:
    if want.handler == HANDLER and basename(want.program) == PROGRAM:
        return
    raise UnsupportedHost(
        f"{engine.name} names its handler {HANDLER} itself, and starts the {PROGRAM} that it finds in PATH",
        evidence=f"wanted: handler {want.handler}, program {want.program}",
        remedy=f"leave handler and runtime_path as they are for {engine.name}",
    )


def _refuse_flag(engine: RuntimeFacts) -> None:
    """The command line takes precedence, and it is the unit's."""
    flags = " ".join(engine.distribution_flags)
    found = re.search(rf"--{KEY}[= ]+[\"']?([\w.-]+)", flags)
    if found and found[1] != HANDLER:
        raise UnsupportedHost(
            f"{engine.unit} starts {engine.name} with --{KEY} {found[1]}, which takes precedence over every file",
            evidence=f"systemctl cat {engine.unit}: ExecStart",
            remedy=f"take --{KEY} out of the unit, systemctl daemon-reload, and run gpunode again",
        )


def _other_config(engine: RuntimeFacts, directory: str) -> str | None:
    """The file that its unit names in place of config.yaml; None where it names none, or that one.

    It reads that file and the directory FILE.d, and nothing else; its environment counts more than a flag (k3s:
    pkg/configfilearg, findConfigFileFlag).
    """
    file = engine.distribution_config or next(_named_by_flag(engine), "")
    return file if file and normpath(file) != f"{directory}/config.yaml" else None


def _named_by_flag(engine: RuntimeFacts) -> Iterator[str]:
    for word, after in pairwise((*engine.distribution_flags, "")):
        name, equals, value = word.partition("=")
        if name in ("--config", "-c"):
            yield value if equals else after


def _refuse_elsewhere(engine: RuntimeFacts, file: str, directory: str) -> None:
    """Raises UnsupportedHost unless nvidia is the default all the same: gpunode does not read that file."""
    if engine.effective_default == HANDLER:
        return
    variable = f"{engine.name.upper()}_CONFIG_FILE"
    how, shown = ("--config", "ExecStart") if engine.distribution_config is None else (variable, "Environment")
    config, where = named(file), named(f"{file}.d/{basename(DROP_IN)}")
    if not file.startswith("/"):  # an address may hold a password
        config, where = "URL", "what is there"
    raise UnsupportedHost(
        f"{engine.unit} starts {engine.name} with {how} {config}, and it reads nothing of {directory} then",
        evidence=f"systemctl cat {named(engine.unit)}: {shown}",
        remedy=f"once {PROGRAM} is installed, write the line {KEY}: {HANDLER} into {where}, systemctl restart "
        f"{named(engine.unit)} (pods keep running), and run gpunode again",
    )


def _template_note(host: HostFacts, engine: RuntimeFacts) -> tuple[str, ...]:
    """Raises UnsupportedHost for a template of the admin's that does not pass the default on."""
    file = template(host, engine)
    if file is None:
        return ()
    refuse_unread(file.path, file.unread)
    if not is_whole(file):
        return (f"{file.path} is your own template; it passes the default on",)
    raise UnsupportedHost(
        f"{file.path} is a whole template, so {engine.name} would not write its default runtime into config.toml",
        evidence='it has no {{ template "base" . }}: nothing of what config.yaml says about runtimes gets through',
        remedy=f'begin {named(file.path)} with {{{{ template "base" . }}}}, keep below it only the tables that the '
        "base does not have (a table that stands twice keeps containerd from starting), and run gpunode again",
    )


def template(host: HostFacts, engine: RuntimeFacts) -> FileFacts | None:
    """The admin's template, in place of the configuration that the distribution would write."""
    directory = dirname(engine.config_path)
    names = ("config-v3.toml.tmpl", "config.toml.tmpl") if _two(engine) else ("config.toml.tmpl",)
    return next((f for f in (host.file(f"{directory}/{name}") for name in names) if f.exists), None)


def is_whole(file: FileFacts) -> bool:
    """Nothing of what the distribution itself would write gets through it."""
    return not _BASE.search(file.text or "") and ".DefaultRuntime" not in (file.text or "")


def _two(engine: RuntimeFacts) -> bool:
    """containerd 2 prefers config-v3.toml.tmpl; an unknown version is taken for a new one."""
    return engine.version is None or at_least(engine.version, first_with("containerd", "config-version-3"))
