"""Docker: daemon.json, applied by a reload where that will do, proven by the daemon's own /info."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpunode.advice import listing, named, typed
from gpunode.catalog.versions import first_with
from gpunode.editing import json_text
from gpunode.editing.unread import refuse_unread
from gpunode.engines.base import Edit, Engine, Removal, Rewrite
from gpunode.engines.daemon import commands
from gpunode.engines.docker import by_flag, edit, provenance, validate
from gpunode.engines.docker.restart import HOOK, lost, misses_hook
from gpunode.engines.handler import about_program
from gpunode.engines.provenance import Origin
from gpunode.errors import UnsupportedHost
from gpunode.masking import mask_argv
from gpunode.model.action import Action, PutFile, RemoveFile, Run
from gpunode.model.active import Trial
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import TOOLKIT, RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction, gpunode

UNITS = ("docker.service", "docker.socket")
AS_SNAP = "docker is installed as a snap"
CDI_NOTES = (
    "docker's CDI support is read at start, so it needs a restart to be live",
    # NVIDIA/nvidia-container-toolkit#2019; docker 26 also starts its containers before it knows of CDI (moby#49989).
    "a container with a CDI device does not come back by itself at boot, as nvidia-cdi-refresh writes the "
    "specification after docker has started: docker restart gives it the GPUs",
)


class Docker(Engine):
    """dockerd as the distributions and Docker's own packages install it."""

    name = "docker"
    title = "reload, no container restarts"
    default_key = "default-runtime"
    config = "/etc/docker/daemon.json"
    labels = "docker@USER, the rootless Docker of USER"
    users_unit = "docker"
    hangs_up = True
    restart_keeps = "its containers stop unless live-restore is on"
    movable = True
    # Seen with 20.10, 26 and 28; 20.10 starts with an entry named like its shim, and ignores it.
    own_handlers = ("runc", "io.containerd.*")
    own_handlers_are = "dockerd exits with 'runtime name 'runc' is reserved', and an entry takes the place of a shim"

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        _refuse_several(engine)
        _refuse_snap(engine)
        path = engine.config_path
        file = host.file(path)
        refuse_unread(file.path, file.unread)
        config = json_text.load(path, file.text or "")
        validate.refuse(engine, want, file.text or "", config)
        changes = tuple(edit.missing(engine, want, config))
        carried = by_flag.dropped(engine, config, changes)
        changes += carried
        if changes:
            _refuse_unknown_flags(engine)
        cdi = any(keys == ("features", "cdi") for keys, _ in changes)
        return Rewrite(
            (Edit(path, file.text, edit.merged(file.text, changes)),),
            tuple(edit.described(engine, config, keys, value) for keys, value in changes),
            (*_notes(engine, want, config, cdi=cdi), *by_flag.notes(carried)),
            (edit.binary(engine, want, config),),
            needs_restart=cdi,
        )

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        if not engine.user:
            return None
        return (
            f"{engine.user} runs a rootless Docker, which gpunode configures only on request: --runtime {engine.label}"
        )

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        if not at_least(engine.version, first_with("docker", "validate")):
            return None
        argv = (engine.binary or "dockerd", "--validate", "--config-file", "{candidate}", *_flags_that_matter(engine))
        # A user's own dockerd validates it as that user, as their file is written: PutFile.owner.
        return Run(argv, env=(("PATH", commands.SYSTEM_PATH),), timeout_s=30)

    def containers(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> Run | None:
        directory = edit.data_root(host.file(engine.config_path).text or "", engine)
        return commands.containers(engine, handler, api="docker", directory=directory)

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        if restart:
            return (commands.restart(engine.unit, UNITS),)
        # Exit 0 means only that SIGHUP was sent: dockerd keeps its old config when the file is wrong. verify() asks.
        # Exit 1 of systemctl means that the job failed or was cancelled, and not why: verify() quotes dockerd.
        return (commands.reload(engine, ok_codes=(0, 1) if engine.init == "systemd" else (0,)),)

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        return commands.verify(engine, want.handler if want.default else f"+{want.handler}", api="docker")

    def healthy(self, engine: RuntimeFacts) -> Run:
        return commands.verify(engine, "-", api="docker")

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        """A reload with the keys merely gone leaves nvidia as the default (20.10, 26 and 28 alike), so the old
        default is first written out, loaded and seen to be in force; then the old bytes are restored."""
        old = engine.effective_default or "runc"
        if restart and rewrite.changed:
            return (commands.restart(engine.unit, UNITS), commands.verify(engine, old, api="docker"))
        # A user's own dockerd is started again by nobody but them.
        revive = () if engine.user else (commands.revive(engine.unit, UNITS),)
        if not rewrite.changed:
            return revive
        main, owner = rewrite.main, engine.owner
        return (
            *revive,
            PutFile(main.path, by_flag.kept(engine, main.path, edit.neutral(main, old)), any_before=True, owner=owner),
            # Any answer will do for these two: the original file must be restored whatever the daemon
            # answers, and the last action checks the result.
            commands.reload(engine, ok_codes=tuple(range(256))),
            commands.verify(engine, old, ok_codes=(0, 1), api="docker"),
            RemoveFile(main.path, owner=owner)
            if main.before is None
            else PutFile(main.path, main.before, any_before=True, owner=owner),
            commands.verify(engine, old, api="docker"),
        )

    def without(self, path: str, text: str, removal: Removal) -> str:
        if removal.before is None:
            # What the file named is not known any more; a default that is docker's own needs no name.
            named = removal.default if removal.default != "runc" else None
        else:
            named = json_text.load(path, removal.before).get("default-runtime")
        if removal.keep_handler:
            return edit.without_default(text, removal.handler, named, before=removal.before, path=path)
        left = edit.removed(text, removal.handler, named, before=removal.before, path=path)
        return left if removal.before or json_text.load(path, left) else ""

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return tuple(provenance.origins(host.file(engine.config_path), engine))

    def trials(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> tuple[Trial, ...]:
        by_runtime = () if engine.effective_default == handler else ("--runtime", handler)
        return tuple(
            Trial(
                engine.label,
                engine.unit,
                typed("docker", "run", *options),
                program="docker",
                socket=engine.socket,
                address=f"DOCKER_HOST=unix://{engine.socket}",
                options=options,
                unfit=f"it is the rootless Docker of {engine.user}" if engine.user else "",
            )
            for options in (by_runtime, ("--gpus", "all"))
        )

    def late(self, engine: RuntimeFacts, want: RuntimeSpec) -> bool:
        return want.cdi and engine.cdi is False

    def start_misses(self, host: HostFacts, engine: RuntimeFacts, *, coming: bool = False) -> str:
        if not misses_hook(host, engine, coming=coming):
            return ""
        return f"dockerd looks for {HOOK}, which docker run --gpus needs, only when it starts"

    def start_found(self, engine: RuntimeFacts) -> tuple[Action, ...]:
        return (commands.found_at_start(engine, HOOK),)

    def lost_by_restart(self, host: HostFacts, engine: RuntimeFacts) -> str:
        return lost(host, engine)

    def undone_by_restart(self, now: str, restored: str) -> bool:
        """dockerd reads features.cdi at its start only."""
        return '"cdi"' in now and '"cdi"' not in restored

    def next_words(self, path: str, *, restart: bool) -> tuple[str, ...]:
        if path.endswith("/.config/docker/daemon.json"):  # docs.docker.com/engine/security/rootless
            return (
                "docker was not restarted; run: systemctl --user restart docker",
                f"rootless Docker also needs, once and as root: gpunode runtime configure {TOOLKIT} "
                "--ctk-set no-cgroups=true",
            )
        gently = "docker was not reloaded; run: systemctl reload docker (no container restarts)"
        return super().next_words(path, restart=restart) if restart else (gently,)


def _notes(engine: RuntimeFacts, want: RuntimeSpec, config: Mapping[str, Any], *, cdi: bool) -> tuple[str, ...]:
    notes = list(CDI_NOTES) if cdi else []
    entry = validate.at(config, ("runtimes", want.handler))
    path = validate.at(config, edit.binary_keys(entry, want.handler)) if entry else None
    notes += about_program(want, f"runtimes.{want.handler}", path, engine.missing_binaries)
    if not want.default and config.get("default-runtime") == want.handler:
        notes.append(f"default-runtime names {want.handler} in the file already and is not changed")
    return tuple(notes)


def _refuse_several(engine: RuntimeFacts) -> None:
    """Which of them people's commands and containers reach is not known, and each has a file and a socket."""
    if not engine.others:
        return
    found = [f"pid {pid}" + (f" ({named(unit)})" if unit else "") for pid, unit in engine.others]
    raise UnsupportedHost(
        f"several dockerds of root run here: {listing([f'pid {engine.pid} ({named(engine.unit)})', *found])}",
        evidence="processes called dockerd that run as root and in no container; gpunode configures one",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "stop all but one for good (systemctl disable --now UNIT; snap remove docker) and run gpunode again; or "
            "for each file: ",
            gpunode("runtime", "configure", "docker", "--config", "FILE", ssh=False),
            ", and reload its dockerd",
        ),
    )


def _refuse_snap(engine: RuntimeFacts) -> None:
    if engine.snap:
        raise UnsupportedHost(
            AS_SNAP,
            evidence=f"{engine.config_path} is confined: its dockerd cannot run the host's nvidia-container-runtime",
            remedy=Remedy(
                RepairAction.UPGRADE,
                "remove the snap and install the distribution's docker.io or Docker's docker-ce; "
                "or --runtime containerd",
            ),
        )


def _refuse_unknown_flags(engine: RuntimeFacts) -> None:
    """Of a dockerd that does not run, where the probe could not tell what a variable of its unit holds."""
    unknown = next((flag for flag in engine.flags if "$" in flag), None)
    if engine.active or unknown is None:
        return
    raise UnsupportedHost(
        f"dockerd would be started with {named(unknown)}, which may hold flags that daemon.json must not set as well",
        evidence=f"{engine.unit} (ExecStart) has it, and dockerd, whose command line would show it, does not run; it "
        "does not start on an option that is 'specified both as a flag and in the configuration file'",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"start it (systemctl start {named(engine.unit.removesuffix('.service'))}) and run gpunode again; or move "
            "those flags into daemon.json",
        ),
    )


def _flags_that_matter(engine: RuntimeFacts) -> tuple[str, ...]:
    """The daemon's own flags, so that one that clashes with the file is found before the reload.

    Without sockets (`-H fd://` exists only under systemd), the config file's name, anything unexpanded, and secrets:
    that a flag is there makes the clash, and command lines are public.
    """
    kept, skip = [], False
    for flag in engine.flags:
        if skip or "$" in flag:
            skip = False
        elif re.fullmatch(r"-H|--host|--config-file", flag):
            skip = True
        elif not re.match(r"-H|--host=|--config-file=", flag):
            kept.append(flag)
    return mask_argv(kept)
