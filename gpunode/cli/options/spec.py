"""Flags and --spec -> Spec."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpunode.advice import meant
from gpunode.cli.options.groups import CheckOptions
from gpunode.errors import UsageError
from gpunode.model.bundle import HOME, VENDOR, Bundle
from gpunode.model.rules import Rules
from gpunode.model.spec import Spec, toolkit_field
from gpunode.specfile import IDLE, KEYS, SpecFile, load_file, load_lock, put_all, spec_text

if TYPE_CHECKING:
    from gpunode.cli.options.setup import SpecOptions
    from gpunode.fleet.host import Host

_TEXTS = (
    "driver",
    "flavour",
    "driver_source",
    "toolkit",
    "toolkit_channel",
    "runtime",
    "only",
    "reboot",
    "cuda",
    "mirror",
    "proxy",
)
_ONLY_CHECKED = ("expect_gpus", "expect", "site_checks")  # setup and plan have none of them
_SWITCHES = ("cdi", "allow_no_gpu", "allow_container_restart", "allow_gpu_in_use")


def wanted_spec(options: SpecOptions | CheckOptions) -> Spec:
    """The file's spec with the flags over it. Raises UsageError with every fault of either."""
    return wanted_file(options).spec


def wanted_file(options: SpecOptions | CheckOptions, layer: Iterable[tuple[str, str]] = ()) -> SpecFile:
    """The same, with what only a check reads. `layer`: keys with their texts that lie under the file's.

    A lock lies over the file: whoever names one wants what is in it, and what it does not say as before.
    """
    under = put_all(Spec(), dict(layer))
    file = load_file(options.spec, under) if options.spec else SpecFile(under, Rules())
    return replace(file, spec=flags_over(file.spec, options, file.keys))


def lock_texts(options: SpecOptions | CheckOptions) -> Mapping[str, str]:
    """What the file of --lock asks of a host, by the key of a spec; {} where there is none."""
    path = getattr(options, "lock", None)
    return load_lock(path).setup if path else {}


def flags_over(spec: Spec, options: SpecOptions | CheckOptions, in_file: Collection[str] = ()) -> Spec:
    """`spec` with the lock and the flags over it; `in_file`: the keys that its file has. Raises UsageError with every
    fault.
    """
    lock, texts = {**bundle_texts(options), **lock_texts(options)}, flag_texts(options)
    return _without_ignored(put_all(put_all(spec, lock), texts), texts, {*in_file, *lock})


def bundle_texts(options: SpecOptions | CheckOptions) -> dict[str, str]:
    """What the file of --bundle asks of a host, by the key of a spec: its driver, from where it lies unpacked."""
    bundle = bundle_of(options)
    if bundle is None:
        return {}
    if getattr(options, "mirror", None):
        raise UsageError("--bundle and --mirror exclude each other", remedy="leave one of them out")
    mirror = f"{HOME}/{VENDOR}"
    return {"mirror": mirror, "driver_source": "cuda", "driver": bundle.manifest.target.driver}


def bundle_of(options: SpecOptions | CheckOptions) -> Bundle | None:
    """The file of --bundle, read whole once; None where there is none. Raises what read_bundle does."""
    path = getattr(options, "bundle", None)
    return _read_once(path) if path else None


@cache
def _read_once(path: Path) -> Bundle:
    from gpunode.bundles.archive import read_bundle

    return read_bundle(path)


def wanted_of_each(
    named: Sequence[Host],
    options: SpecOptions | CheckOptions,
    change: Callable[[SpecFile], SpecFile] = lambda file: file,
) -> Callable[[Host], SpecFile]:
    """The same for each host, over what its inventory wants of it; `change` is applied to each of them, once.

    Raises UsageError that names a host.
    """
    found: dict[object, SpecFile] = {}
    for host in named:
        if host.layer not in found:
            try:
                found[host.layer] = change(wanted_file(options, host.layer))
            except UsageError as error:
                if host.layer:
                    error.problem = f"{host}: {error.problem}"
                raise
    return lambda host: found[host.layer]


def own_specs(named: Sequence[Host], file_of: Callable[[Host], SpecFile], options: SpecOptions) -> str:
    """`typed_text` where hosts have specs of their own; "" where all have the same."""
    alike = all(file_of(host).spec == file_of(named[0]).spec for host in named)
    return "" if alike else typed_text(options)


def typed_text(options: SpecOptions) -> str:
    """All that was typed of a spec, its file's content too: what lies over that of each host's inventory."""
    texts = {f"lock.{key}": text for key, text in lock_texts(options).items()} | flag_texts(options)
    flags = "".join(f"{key}={text}\n" for key, text in sorted(texts.items()))
    return f"of each host\n{flags}{spec_text(load_file(options.spec).spec) if options.spec else ''}"


def _without_ignored(spec: Spec, typed: Collection[str], in_file: Collection[str]) -> Spec:
    """A typed `--driver none` takes precedence over the file's flavour; raises UsageError for both from one hand."""

    def hand(key: str) -> int:
        return 2 if key in typed else 1 if key in in_file else 0

    for none, idle in IDLE.items():
        ignored = [key for key in idle if getattr(spec, key) != getattr(Spec(), key)]
        if getattr(spec, none).kind != "none" or not ignored:
            continue
        wrong = [KEYS[key].flag for key in ignored if hand(key) >= hand(none)]
        if wrong:
            raise UsageError(
                f"{KEYS[none].flag} none leaves nothing for {', '.join(wrong)}",
                evidence=f"nothing reads it where no {none} is wanted",
                remedy=f"leave {wrong[0]} out, or ask for a {none}",
            )
        spec = replace(spec, **{key: getattr(Spec(), key) for key in ignored})
    return spec


def flag_texts(options: SpecOptions | CheckOptions) -> dict[str, str]:
    """The flags that were typed, by their key in a spec."""
    texts = {key: value for key in _TEXTS if (value := getattr(options, key, None)) is not None}
    texts |= {key: "true" for key in _SWITCHES if getattr(options, key, False)}
    if options.no_default:
        texts["default"] = "false"
    if options.kubernetes_mode is not None:
        texts["kubernetes.mode"] = options.kubernetes_mode
    texts |= ctk_texts(tuple(options.ctk_set or ()))
    return texts | (_only_checked(options) if isinstance(options, CheckOptions) else _only_set_up(options))


def retyped(options: SpecOptions | CheckOptions) -> tuple[str, ...]:
    """What was typed of it that setup and plan have as well, to be typed there again."""
    typed = [(field.name, getattr(options, field.name)) for field in fields(options)]
    return tuple(word for name, value in typed if name not in _ONLY_CHECKED for word in flag_words(name, value))


def flag_words(name: str, value: object) -> tuple[str, ...]:
    """("--ctk-set", "mode=cdi", "--ctk-set", "log-level=info"), ("--no-hold",), () for what was not typed."""
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is True:
        return (flag,) if value else ()
    if value is False:  # of the switches only this one can be typed off; the others are off when they are not typed
        return ("--no-hold",) if name == "hold" else ()
    each = value if isinstance(value, list) else [value]
    return tuple(word for one in each for word in (flag, str(one)))


def texts_of_words(words: tuple[str, ...]) -> dict[str, str]:
    """The options of a remedy's setup by their key in a spec: ("--only", "driver", "--cdi")."""
    found, key = {}, ""
    for word in words:
        if word.startswith("--"):
            key = word.removeprefix("--").replace("-", "_")
            found[key] = "true"
        else:
            found[key] = word
    return found


def _only_checked(options: CheckOptions) -> dict[str, str]:
    """Raises UsageError for a setting of the toolkit that no check reads: it would be ignored."""
    unread = [word for word in options.ctk_set or () if set(ctk_texts((word,))) != {"toolkit_config.no_cgroups"}]
    if unread:
        raise UsageError(
            f"--ctk-set {unread[0]!r} is nothing that a check reads",
            evidence="of the toolkit's settings it reads no-cgroups",
            remedy="leave it out",
        )
    site = {} if options.site_checks is None else {"site_checks": os.path.abspath(options.site_checks)}
    return expect_texts(options) | site


def expect_texts(options: CheckOptions) -> dict[str, str]:
    """--expect KEY=VALUE and --expect-gpus by the key of a spec: {"expect.driver": "580"}. Raises UsageError."""
    texts = {} if options.expect_gpus is None else {"expect.gpus": options.expect_gpus}
    for word in options.expect or ():
        name, equals, value = word.partition("=")
        key, keys = f"expect.{name.strip()}", [key for key in KEYS if key.startswith("expect.")]
        if not equals or key not in KEYS:
            names = [key.removeprefix("expect.") for key in keys]
            raise UsageError(
                f"--expect {word[:80]!r} " + ("names nothing that can be expected" if equals else "has no value"),
                evidence=f"{meant(name, names) if equals else ''}the keys are {', '.join(names)}",
                remedy="its form is KEY=VALUE, for example --expect driver=580",
            )
        if key in texts:
            raise UsageError(f"{name.strip()} is expected twice", remedy="leave one of them out")
        texts[key] = value
    return texts


def _only_set_up(options: SpecOptions) -> dict[str, str]:
    texts = {}
    if options.hold is not None:
        texts["hold"] = "true" if options.hold else "false"
    if options.trust_key:
        texts["trust_keys"] = ",".join(options.trust_key)
    if options.mig:
        texts["mig"] = ",".join(options.mig)
    return texts


def ctk_texts(words: tuple[str, ...]) -> dict[str, str]:
    """--ctk-set KEY=VALUE by the key of a spec: {"toolkit_config.mode": "cdi"}. Raises UsageError."""
    texts: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                f"--ctk-set {word!r} has no value", evidence="its form is KEY=VALUE", remedy="for example mode=cdi"
            )
        key = f"toolkit_config.{toolkit_field(name.strip())}"
        if key in texts:
            raise UsageError(f"--ctk-set sets {name.strip()} twice", remedy="leave one of them out")
        texts[key] = value
    return texts
