"""The file of `setup --plan`: read with limits, held against what was typed and against a fresh plan.

Whoever can write the file decides nothing: every action comes from a fresh plan of this gpunode, and what a spec could
ask others to be trusted for (TRUST) counts only when it is typed with --plan.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.spec import ctk_texts, flag_texts, retyped, wanted_spec
from gpunode.errors import UsageError
from gpunode.model.plan import Plan
from gpunode.model.spec import Spec
from gpunode.planner.drift import same_plan
from gpunode.remedy import Command, Remedy, RepairAction, gpunode, setup
from gpunode.render.machine import plan_from_json, plan_to_json
from gpunode.render.wording import mask_url
from gpunode.specfile import KEYS, key_texts, parse_spec, put_all, spec_text

LIMIT_BYTES = 16 << 20  # a plan with every file's text and diff is some 100 KB

# What makes a host fetch from, believe, run or write to something that NVIDIA's own repositories and packages do not
# provide: keys of the spec. A plan file alone may not ask for them.
TRUST = (
    "mirror",
    "trust_keys",
    "proxy",
    "runtime_path",
    "toolkit_config.runtimes",
    "toolkit_config.runtime_debug",
    "toolkit_config.cli_debug",
    "toolkit_config.no_cgroups",
    "toolkit_config.accept_envvar_when_unprivileged",
    "toolkit_config.accept_volume_mounts",
)


def saved_plan(path: Path, wanted: SpecOptions) -> Plan:
    """The plan in a file, whose trust options were typed as well. Raises UsageError; nothing was touched."""
    plan = plan_from_json(_text(path))
    _refuse_odd(plan.spec)
    _refuse_other_words(plan.spec, wanted)
    return plan


def hold_against(saved: Plan, fresh: Plan) -> None:
    """Raises Drift, or UsageError for another host's plan, where `saved` is not what `fresh` would be saved as."""
    same_plan(saved, plan_from_json(plan_to_json(fresh)))


def applied_by(path: Path, wanted: SpecOptions, spec: Spec) -> Command:
    """The command that applies the plan saved there; trust that its file may not ask for is typed again, that of the
    host's inventory too: with --plan nothing of the inventory's spec is read.
    """
    asks = {key for key in TRUST if _of(spec, key) != _of(Spec(), key)}
    if asks and wanted_spec(wanted) != spec:
        wanted = _trusting({key: text for key, text in key_texts(spec).items() if key in asks})
    elif asks and not wanted.spec:
        words = [word for word in wanted.ctk_set or () if asks & set(ctk_texts((word,)))]
        wanted = SpecOptions(mirror=wanted.mirror, trust_key=wanted.trust_key, proxy=wanted.proxy, ctk_set=words)
    return setup("--plan", str(path), *(retyped(wanted) if asks else ()))


def _trusting(texts: Mapping[str, str]) -> SpecOptions:
    """These keys of TRUST as flags; runtime_path has none, and setup says what it wants."""
    settings = [
        f"{KEYS[key].flag.split()[1]}={text}" for key, text in texts.items() if key.startswith("toolkit_config.")
    ]
    keys = [texts["trust_keys"]] if "trust_keys" in texts else None
    return SpecOptions(mirror=texts.get("mirror"), proxy=texts.get("proxy"), trust_key=keys, ctk_set=settings or None)


def _text(path: Path) -> str:
    """Raises UsageError for what is no regular file (a FIFO has no end), is too long, or is not UTF-8."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _unreadable(path, "it is not a regular file")
            data = file.read(LIMIT_BYTES + 1)
        if len(data) > LIMIT_BYTES:
            raise _unreadable(path, f"it is over {LIMIT_BYTES >> 20} MiB")
        return data.decode("utf-8")
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (UnicodeDecodeError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(path, "it is not UTF-8") from error


def _unreadable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"the plan {path} cannot be read",
        evidence=why,
        remedy=Remedy(RepairAction.NONE, "name a file that ", gpunode("plan", "--save"), " wrote"),
    )


def _refuse_odd(spec: Spec) -> None:
    """A spec that no command line and no spec file can ask for was not saved by gpunode."""
    try:
        asked = parse_spec(spec_text(spec), "the plan's spec")
    except UsageError as error:
        raise UsageError(
            "this is not a plan gpunode saved",
            evidence=f"{error.problem}: {error.evidence}",
            remedy=Remedy(RepairAction.NONE, "make it again with ", gpunode("plan", "--save")),
        ) from error
    if asked != spec:
        raise UsageError(
            "this is not a plan gpunode saved",
            evidence=f"its spec asks for what no option does: {', '.join(_unlike(asked, spec))}",
            remedy=Remedy(RepairAction.NONE, "make it again with ", gpunode("plan", "--save")),
        )


def _refuse_other_words(spec: Spec, wanted: SpecOptions) -> None:
    """With --plan comes nothing else, or the same again: with --spec the whole wish, else only what is in TRUST."""
    texts = flag_texts(wanted)
    typed = wanted_spec(wanted)
    if wanted.spec or wanted.lock:
        differ = _unlike(_masked(typed), spec)
    else:
        differ = [KEYS[key].flag for key in texts if key not in TRUST or _of(_masked(typed), key) != _of(spec, key)]
    if differ:
        raise UsageError(
            f"{', '.join(differ)} cannot change a saved plan",
            remedy=Remedy(RepairAction.NONE, "make a new one with ", gpunode("plan", "--save")),
        )
    missing = [
        key for key in TRUST if _of(spec, key) != _of(Spec(), key) and _of(_masked(typed), key) != _of(spec, key)
    ]
    if missing:
        flags = ", ".join(dict.fromkeys(_flag(key) for key in missing))
        asks = "; ".join(f"{KEYS[key].flag.removeprefix('--')} {_of(spec, key)!r}"[:200] for key in missing)
        raise UsageError(
            "the plan asks for trust that you did not type",
            evidence=f"its file wants {asks}, and whoever can write the file could have put that there",
            remedy=f"if that is your wish, type the same with --plan: {flags}",
        )


def _flag(key: str) -> str:
    """How the user types the key; what has no flag of its own stands in a spec file."""
    flag = KEYS[key].flag
    return "--spec FILE" if flag == "--runtime-path" else flag.split()[0]


def _of(spec: Spec, key: str) -> object:
    outer, _, inner = KEYS[key].field.partition(".")
    value = getattr(spec, outer)
    return getattr(value, inner) if inner else value


def _masked(spec: Spec) -> Spec:
    """As the file would have it."""
    return put_all(spec, {"proxy": mask_url(spec.proxy)}) if spec.proxy else spec


def _unlike(one: object, two: object) -> list[str]:
    """Names of the fields that differ: ["driver", "runtime.drop_in"]."""
    found: list[str] = []
    for field in fields(one):  # type: ignore[arg-type]  # both are Spec or a part of it
        left, right = getattr(one, field.name), getattr(two, field.name)
        if left != right:
            deeper = is_dataclass(left) and type(left) is type(right) and field.name in ("runtime", "toolkit_config")
            found += [f"{field.name}.{name}" for name in _unlike(left, right)] if deeper else [field.name]
    return found
