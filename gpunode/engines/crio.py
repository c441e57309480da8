"""CRI-O: a drop-in after every other one, with conmon's settings copied from the present default runtime.

crio.conf is read first, then the files of crio.conf.d in the order of their names; a later key wins, and a later
table of a runtime replaces the earlier one whole. Written from its documentation; CRI-O itself was not run.
"""

from __future__ import annotations

import copy
import re
from posixpath import basename, dirname

from gpunode.advice import named, typed
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.editing.unread import refuse_unread
from gpunode.engines import drop_ins
from gpunode.engines.base import Alone, Disk, Edit, Removal, Rewrite
from gpunode.engines.containerd.cri_section import section
from gpunode.engines.cri_daemon import CriDaemon
from gpunode.engines.handler import PATH, LowLevel, about_program, is_low_level, starts
from gpunode.engines.handler import program as program_of
from gpunode.engines.provenance import Origin, Root, flags_of, of_toml, readable, there
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec
from gpunode.remedy import Remedy, RepairAction
from gpunode.resources import render

READER = "CRI-O"
# Where nvidia-ctk of 1.18.0 to 1.19.0 put its drop-in: CRI-O reads crio.conf.d (nvidia-container-toolkit#1829).
MISPLACED = "/etc/crio/conf.d/99-nvidia.toml"
ROOTS = (Root(("crio", "runtime"), "default_runtime"),)
# Of another program than nvidia-container-runtime: its path for each platform, and kata's own config.
NOT_COPIED = ("runtime_path", "platform_runtime_paths", "runtime_config_path", "runtime_type")
# Built in where no file sets it: runc, and crun from 1.31 on (unverified).
BUILT_IN = ("crun", "runc")


class Crio(CriDaemon):
    """CRI-O as the distributions and its own packages install it."""

    name = "crio"
    api = "crio"
    title = "restart, pods keep running"
    default_key = "default_runtime"
    config = "/etc/crio/crio.conf"
    movable = True
    own_handlers = BUILT_IN

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        if want.default:
            _refuse_flag(engine, want)
        directory = drop_in_directory(engine)
        files = _files(host, engine, directory)
        default, runtimes = effective(files)
        file = host.file(
            drop_ins.path_to_write(
                tuple(f for f in files if drop_ins.is_in(directory, f.path, deep=True)),
                f"{directory}/99-nvidia.toml",
                lambda f: want.handler in _runtimes(drop_ins.load(f, READER)),
            )
        )
        asked, asked_runtimes = _asked(engine)
        base_name, base = _base(default or asked, {**asked_runtimes, **runtimes}, want.handler)
        present = default or asked or base_name
        result = copy.deepcopy(drop_ins.load(file, READER))
        named = runtimes.get(want.handler, {}).get("runtime_path")
        program = program_of(want, named, engine.missing_binaries, hooks=True)
        added = _merge(result, want, runtimes.get(want.handler), program, (base_name, base), present)
        if not added:
            file = file if file.text is not None or not files else files[-1]
            return Rewrite((Edit(file.path, file.text, file.text or ""),), ())
        names_default = "default_runtime" in section(result, "crio", "runtime")
        fresh = render("engines/crio.toml.j2", handler=want.handler, path=want.program, default=names_default)
        text = file.text if file.text is not None else fresh
        after = toml_text.rewrite(file.path, text, result, ("crio", "runtime", "runtimes"))
        # CRI-O does not start with a default runtime whose program is missing.
        notes = self._about_low_level(host, engine, want.handler)
        if host.file(MISPLACED).exists and directory != dirname(MISPLACED):
            notes += (f"{MISPLACED} has no effect: CRI-O does not read its directory, where an nvidia-ctk wrote it",)
        notes += about_program(want, f"runtimes.{want.handler}", named, engine.missing_binaries, hooks=True)
        return Rewrite((Edit(file.path, file.text, after),), tuple(added), notes, binaries=(program,))

    def low_level(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> LowLevel | None:
        """The runtime that made the containers which CRI-O started without NVIDIA's, and whose settings `handler` has.

        None where no file and no daemon names one, and for a handler that does not read the toolkit's own config.toml:
        runc with OCI hooks, or the GPU Operator's. Raises ConfigFileError.
        """
        files = _files(host, engine, drop_in_directory(engine))
        default, found = effective(files)
        asked, asked_runtimes = _asked(engine)
        runtimes = {**asked_runtimes, **found}
        handlers = runtimes.get(handler, {})
        program = str(handlers.get("runtime_path") or "")
        if is_low_level(program) or dirname(program) not in ("", *PATH):
            return None
        named = [effective((file,))[0] for file in reversed(files)]
        before = next((one for one in (default, asked, *named) if one and one != handler), None)
        # A handler that is in force keeps its containers' state where the runtime keeps it whose settings it got.
        root = handlers.get("runtime_root")
        others = [one for one in (before, *BUILT_IN) if one in runtimes and one != handler]
        same = [one for one in others if root and runtimes[one].get("runtime_root") == root]
        name, base = _base(same[0] if same else before, runtimes, handler)
        own = str(base.get("runtime_path") or name)
        # kata is no OCI runtime, and NVIDIA's by another name would start itself.
        if not (base or before in BUILT_IN) or basename(own).startswith("nvidia-container-runtime"):
            return None
        return LowLevel(name, own)

    def _about_low_level(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> tuple[str, ...]:
        wanted = self.low_level(host, engine, handler)
        if wanted is None or starts(host, wanted):
            return ()
        return (
            f"CRI-O's own runtime is {wanted.name}: nvidia-container-runtime must find {wanted.program} before any "
            f"other under runtimes in {TOOLKIT_CONFIG}, or CRI-O takes containers that {wanted.name} made for stopped",
        )

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        return None  # CRI-O has no verb that checks one drop-in

    def without(self, path: str, text: str, removal: Removal) -> str:
        old = None if removal.before is None else toml_text.load(path, removal.before)
        previous = removal.default if old is None else section(old, "crio", "runtime").get("default_runtime")
        left = removed(text, removal.handler, previous, path=path, keep_handler=removal.keep_handler)
        return left if old or toml_text.load(path, left) else ""

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return tuple(of_toml(readable(there(host, engine)), engine, ROOTS))

    def around(self, main: str) -> tuple[str, ...]:
        return (f"{main}.d/**",)  # its UpdateFromPath walks the directory to its ground

    def alone(self, disk: Disk, asked: Alone, schema: int | None) -> Alone:
        disk.read(TOOLKIT_CONFIG)  # for _about_low_level
        # It reads its drop-ins next to the file that is named.
        return super().alone(disk, asked, schema)._replace(flags=("--config-dir", f"{asked.main.path}.d"))


def effective(files: tuple[FileFacts, ...]) -> tuple[str | None, dict[str, Plain]]:
    """(default runtime, every runtime's table) that the files make together; None when none names a default."""
    default: str | None = None
    runtimes: dict[str, Plain] = {}
    for file in files:
        runtime = _runtime_section(file)
        default = runtime.get("default_runtime") or default
        runtimes |= _runtimes(drop_ins.load(file, READER))
    return default, runtimes


def removed(
    text: str,
    handler: str,
    previous_default: str | None,
    *,
    path: str = "99-nvidia.toml",
    keep_handler: bool = False,
) -> str:
    """`text` without the handler, and the default restored to `previous_default` (None: the key goes).

    For a drop-in that others wrote to since. A default that is not `handler` now is unchanged. Raises ConfigFileError.
    """
    want = copy.deepcopy(toml_text.load(path, text))
    runtime = section(want, "crio", "runtime")
    runtimes = section(runtime, "runtimes")
    if not keep_handler:
        runtimes.pop(handler, None)
    if "runtimes" in runtime and not runtimes:
        del runtime["runtimes"]
    if runtime.get("default_runtime") == handler:
        del runtime["default_runtime"]
        if previous_default is not None:
            runtime["default_runtime"] = previous_default
    for key, above in (("runtime", section(want, "crio")), ("crio", want)):
        if above.get(key) == {}:
            del above[key]
    return toml_text.rewrite(path, text, want, ("crio", "runtime", "runtimes"))


def drop_in_directory(engine: RuntimeFacts) -> str:
    """Of the drop-ins: --config-dir, -d, or where it is by default."""
    found = re.search(r"(?:^|\0)(?:--config-dir|-d)[\0=]([^\0]+)", "\0".join(engine.flags))
    return found[1].rstrip("/") if found else "/etc/crio/crio.conf.d"


def _files(host: HostFacts, engine: RuntimeFacts, directory: str) -> tuple[FileFacts, ...]:
    main = host.file(engine.config_path)
    refuse_unread(main.path, main.unread)
    return (*((main,) if main.text is not None else ()), *drop_ins.files_in(host, directory, deep=True))


def _refuse_flag(engine: RuntimeFacts, want: RuntimeSpec) -> None:
    """The command line takes precedence (cri-o: internal/criocli, mergeConfig), and it is the unit's.

    `engine.flags` are the running process': without a restart they are what they were.
    """
    flag = flags_of(engine.flags).get("default-runtime", [want.handler])[-1]
    if flag == want.handler:
        return
    raise UnsupportedHost(
        f"{engine.unit} starts CRI-O with --default-runtime {flag}, which takes precedence over every file",
        evidence=f"its command line; systemctl cat {named(engine.unit)} shows ExecStart, and the file of its options",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "take --default-runtime out of these, systemctl daemon-reload, "
            f"{typed('systemctl', 'restart', engine.unit)} (pods keep running), and run gpunode again; "
            "or use --no-default",
        ),
    )


def _runtime_section(file: FileFacts) -> Plain:
    plain = drop_ins.load(file, READER)
    runtime = ("crio", "runtime")
    tables = [("crio",), runtime, *((*runtime, "runtimes", *name) for name in ((), *_named(plain)))]
    texts = [(*runtime, "default_runtime"), *((*t, k) for t in tables[3:] for k in ("runtime_path", "runtime_type"))]
    kinds: dict[tuple[str, ...], type] = {**dict.fromkeys(tables, dict), **dict.fromkeys(texts, str)}
    for keys, kind in kinds.items():
        value: object = plain
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, kind):
            wanted = "a table" if kind is dict else "a text"
            raise ConfigFileError(
                f"{file.path}: {'.'.join(keys)} is {value!r:.80}, and CRI-O wants {wanted}",
                evidence="CRI-O does not start on it; no file was touched",
                remedy="correct it, and run gpunode again",
            )
    return section(plain, "crio", "runtime")


def _named(plain: Plain) -> list[tuple[str]]:
    return [(name,) for name in section(plain, "crio", "runtime", "runtimes")]


def _runtimes(plain: Plain) -> dict[str, Plain]:
    found = section(plain, "crio", "runtime", "runtimes")
    return {name: table for name, table in found.items() if isinstance(table, dict)}


def _asked(engine: RuntimeFacts) -> tuple[str | None, dict[str, Plain]]:
    """What the running CRI-O reports that it uses, with the built-in settings that no file spells out."""
    plain = toml_text.load("crio status config", engine.merged_config or "")
    tables = {name: {k: v for k, v in table.items() if v} for name, table in _runtimes(plain).items()}
    return engine.effective_default, tables


def _base(default: str | None, runtimes: dict[str, Plain], handler: str) -> tuple[str, Plain]:
    """(name, table) whose settings are copied: the default where it is an OCI runtime, else crun or runc.

    kata and similar ones are of type vm or pod, whose settings nvidia-container-runtime does not understand.
    """
    names = [name for name in (default, *BUILT_IN) if name and name != handler and name in runtimes]
    found = next((name for name in names if runtimes[name].get("runtime_type", "") in ("", "oci")), None)
    return (found, runtimes[found]) if found else ((default if default != handler else None) or BUILT_IN[0], {})


def _merge(
    plain: Plain, want: RuntimeSpec, there: Plain | None, program: str, base: tuple[str, Plain], present: str
) -> list[str]:
    """Change `plain` to what is wanted; what was done, for the plan's line. `there`: the handler in force."""
    added: list[str] = []
    runtime = plain.setdefault("crio", {}).setdefault("runtime", {})
    copied = {k: copy.deepcopy(v) for k, v in base[1].items() if k not in NOT_COPIED}
    runtimes = runtime.setdefault("runtimes", {})
    if there is None:
        runtimes[want.handler] = {"runtime_path": program, "runtime_type": "oci", **copied}
        note = f" ({', '.join(sorted(copied))} copied from {base[0]})" if copied else ""
        added.append(f"+ runtime {want.handler}{note}")
    elif there.get("runtime_path") != program:
        # What was set manually is unchanged; only the program is corrected.
        runtimes[want.handler] = {**there, **runtimes.get(want.handler, {}), "runtime_path": program}
        added.append(f"{want.handler}: runtime_path {there.get('runtime_path')} → {program}")
    if want.default and present != want.handler:
        runtime["default_runtime"] = want.handler
        added.append(f"default {present} → {want.handler}")
    if not runtimes:
        del runtime["runtimes"]
    return added
