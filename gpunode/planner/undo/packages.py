"""Packages, pins and repositories that setup added: removed only where --packages asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from posixpath import basename

from gpunode.advice import listing
from gpunode.model.action import RemoveFile, Run
from gpunode.model.bundle import HOME
from gpunode.model.cdi_devices import REFRESHED
from gpunode.model.facts import HostFacts
from gpunode.model.past import ABSENT, Past, PastFile
from gpunode.model.plan import ForUndo, Kept, Step
from gpunode.packages.base import Backend
from gpunode.packages.pins import named_by
from gpunode.packages.registry import BACKENDS, goes_with_packages
from gpunode.planner.install.bundle import REMOVE, SOURCES
from gpunode.planner.undo.files import diffs, only_backs, only_left, rollback
from gpunode.remedy import gpunode


def added_packages(host: HostFacts, past: Past) -> tuple[str, ...]:
    """Installed now and absent before the first of the runs."""
    return tuple(name for name in _fresh(past) if name in host.packages.installed)


def _fresh(past: Past) -> tuple[str, ...]:
    return tuple(name for name, version in past.packages.items() if version is None)


def needed_packages(host: HostFacts, past: Past, needed: Sequence[str]) -> Kept | None:
    """Where there are any. `needed`: why they must not be removed (an engine still runs with them)."""
    names = added_packages(host, past)
    if not names or not needed:
        return None
    text = f"{listing(names)} are not removed, nor their pins and repositories: {'; '.join(needed)}"
    return Kept("packages", text, by_hand=f"change that ({'; '.join(needed)}); then {gpunode('undo', '--packages')}")


def package_steps(host: HostFacts, past: Past, toolkit: Sequence[str]) -> tuple[tuple[Step, ...], tuple[Kept, ...]]:
    """Steps, and what is left. `toolkit`: its packages."""
    names, backend = _erasable(host, past), BACKENDS.get(host.packages.manager or "")
    if backend and any(file.path in SOURCES for file in host.packages.sources):
        backend = backend.alone()
    steps: list[Step] = []
    if backend is not None:
        steps += [step for step in (_erase_step(names, past, backend), _hold_step(host, past, backend, names)) if step]
        steps += [_specification_step()] if set(_fresh(past)) & set(toolkit) and host.file(REFRESHED).exists else []
    repository, left = _repository_step(host, past, backend)
    return (*steps, *([repository] if repository else [])), left


def kept_packages(host: HostFacts, past: Past) -> tuple[Kept, ...]:
    """What is not removed without --packages."""
    names, held = added_packages(host, past), _holds(host, past)
    if names:
        along = "pins and repositories" if held else "repositories"
        return (Kept("packages", f"{listing(names)} are not removed, nor their {along} (--packages removes them)"),)
    return (Kept("packages", f"{listing(held)} remain pinned (--packages unpins them)"),) if held else ()


def replaced_packages(host: HostFacts, past: Past) -> tuple[Kept, ...]:
    """Packages that had another version before: repositories drop old ones, so nothing can promise the rollback.

    Those that are gone, such as the driver of another source, are named with the command that asks for them.
    """
    there = host.packages.installed
    before = {name: version for name, version in past.packages.items() if version is not None}
    other = [f"{n} was {v}" for n, v in before.items() if n in there and there[n].version != v]
    gone = [f"{name} {version}" for name, version in before.items() if name not in there]
    kept = [Kept("packages.versions", f"versions are not changed: {', '.join(other)}")] if other else []
    if gone:
        text = f"packages that were there before setup and are gone are not installed again: {', '.join(gone)}"
        kept.append(Kept("packages.removed", text + _asks_for(host, [n for n in before if n not in there])))
    return tuple(kept)


def _asks_for(host: HostFacts, names: Sequence[str]) -> str:
    backend = BACKENDS.get(host.packages.manager or "")
    return f" ({backend.words('install', *names)} asks the host's repositories for them)" if backend else ""


def _hold_step(host: HostFacts, past: Past, backend: Backend, gone: Sequence[str]) -> Step | None:
    """After the packages: if they are not removed, they remain pinned. A pin removed with its package is no error."""
    held = tuple(name for name in _holds(host, past) if name not in gone)
    if not held:
        return None
    release = backend.unhold(held)
    return Step(
        "undo.packages.hold",
        f"unpin {listing(held)}",
        "setup pinned them; what was pinned before it remains pinned",
        (replace(release, ok_codes=(0, 1, 100), retry=()) if gone else release,),
        () if gone else (backend.hold(held),),
    )


def _holds(host: HostFacts, past: Past) -> tuple[str, ...]:
    """Pinned now, not before, and named by a command of setup (by name or by pattern)."""
    return tuple(sorted(named_by(past.words, host.packages.held - past.held)))


def _erasable(host: HostFacts, past: Past) -> tuple[str, ...]:
    """Those that are there, whole or half, or of which configuration is left: a changed driver leaves its old pin's."""
    there = {*host.packages.installed, *host.packages.residue}
    return tuple(name for name in _fresh(past) if name in there)


def _erase_step(names: tuple[str, ...], past: Past, backend: Backend) -> Step | None:
    goes_on = past.erasing and past.inventory and backend.erase_resumes
    if not names and not goes_on:
        return None
    along = ", and what was installed with them" if past.inventory else ""
    return Step(
        "undo.packages",
        f"remove {listing(names)}{along}" if names else "finish the removal of packages that was interrupted",
        "setup installed them; what others need or have edited is not removed",
        (backend.erase(names, past.inventory),),
        for_undo=ForUndo(erases=True),
    )


def _specification_step() -> Step:
    """After the packages: their unit writes it again until it is gone with them."""
    why = "the toolkit's unit wrote it for the driver and the hooks that are gone"
    return Step("undo.cdi", f"remove {REFRESHED}", why, (RemoveFile(REFRESHED),))


def _repository_step(host: HostFacts, past: Past, backend: Backend | None) -> tuple[Step | None, tuple[Kept, ...]]:
    files = [rollback(file) for file in past.files if goes_with_packages(file.path) and not _of_a_package(file, past)]
    backs = only_backs(files)
    keys = [path for path in past.wrote if goes_with_packages(path) and path in host.packages.keys]
    # Last: by then no entry of gpunode's own uses them, and nothing after it can fail.
    added = _added_keys(past, backend) if backend else ()
    forget = backend.forget(added) if backend and added else None
    if not backs and not keys and not forget:
        return None, only_left(files)
    paths = [back.file.path for back in backs if back.text is None] + keys
    restored = [back.file.path for back in backs if back.text is not None]
    trusted = [f"{backend.key_title(key)} unless another entry uses it" for key in added if backend and forget]
    actions = [
        *(action for back in backs for action in back.actions()),
        *(RemoveFile(path) for path in keys),
        *(action for back in backs for action in back.tidy()),
        *(_without_bundle() if SOURCES & set(paths) else ()),
        *([forget] if forget else []),
    ]
    step = Step(
        "undo.repositories",
        "; ".join(
            f"{verb} {', '.join(these)}"
            for verb, these in (("remove", [*paths, *trusted]), ("restore", restored))
            if these
        ),
        "setup added these repositories and their keys",
        tuple(actions),
        diff=diffs(backs),
    )
    return step, only_left(files)


def _without_bundle() -> tuple[Run, ...]:
    """The packages of a bundle, once no source names them any more."""
    return (Run(("sh", "-c", REMOVE, "sh", HOME), description=f"remove {HOME}, the unpacked bundle"),)


def _of_a_package(file: PastFile, past: Past) -> bool:
    """A change of driver removes the old branch's pin. It came with a package of setup's own, and stays away."""
    return file.before != ABSENT and basename(file.path).removesuffix(".pref") in _fresh(past)


def _added_keys(past: Past, backend: Backend) -> tuple[str, ...]:
    """To the manager's store, by setup itself: what was in it before was not added."""
    return tuple(
        dict.fromkeys(key for description, answer in past.answers for key in backend.added_keys(description, answer))
    )
