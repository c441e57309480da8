"""The keys of a spec, which are flags as well, and Spec with one of them set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.model.expectation import FORMS, LISTS
from gpunode.model.spec import (
    HANDLER_FORMS,
    HANDLER_NAME,
    KUBERNETES_MODES,
    TOOLKIT_MODES,
    TOOLKIT_SETTINGS,
    DriverRequest,
    DriverSource,
    Flavour,
    RebootPolicy,
    Spec,
    ToolkitRequest,
    parse_cuda,
    parse_mig,
    parse_mirror,
    parse_only,
)
from gpunode.specfile import values
from gpunode.specfile.rules import RULES
from gpunode.values import dataclass


@dataclass(frozen=True)
class Key:
    """One key of the spec file, which is one flag as well. `parse` raises UsageError that begins with the flag."""

    flag: str
    field: str  # where it goes in Spec; "runtime.cdi" is a field of a field
    parse: Callable[[str], Any]  # the field's own type; Spec's fields differ
    many: bool = False  # a YAML list is as good as text with commas


def _toolkit_config() -> dict[str, Key]:
    """One key for each setting of the toolkit's config.toml; as a flag they are values of --ctk-set."""
    parse: dict[str, Callable[[str], Callable[[str], Any]]] = {
        "mode": lambda flag: values.choice(flag, TOOLKIT_MODES),
        "runtimes": values.names,
        "log_level": lambda flag: values.choice(flag, ("debug", "info", "warning", "error")),
        "runtime_debug": values.log_path,
        "cli_debug": values.log_path,
    }
    keys = {}
    for field, names in TOOLKIT_SETTINGS.items():
        flag = f"--ctk-set {'.'.join(names)}"
        kind = parse.get(field, values.yes_no)
        keys[f"toolkit_config.{field}"] = Key(flag, f"toolkit_config.{field}", kind(flag), many=field == "runtimes")
    return keys


def _expectation() -> dict[str, Key]:
    """As flags they are values of --expect."""
    return {
        f"expect.{name}": Key(f"--expect {name}", f"expect.{name}", parse, many=name in LISTS)
        for name, parse in FORMS.items()
    }


KEYS: dict[str, Key] = {
    "driver": Key("--driver", "driver", DriverRequest.parse),
    "flavour": Key("--flavour", "flavour", values.choice("--flavour", Flavour)),
    "driver_source": Key("--driver-source", "driver_source", values.choice("--driver-source", DriverSource)),
    "toolkit": Key("--toolkit", "toolkit", ToolkitRequest.parse),
    "toolkit_channel": Key(
        "--toolkit-channel", "toolkit_channel", values.choice("--toolkit-channel", ("stable", "experimental"))
    ),
    "runtime": Key("--runtime", "runtimes", values.runtimes, many=True),
    "default": Key("--default", "runtime.default", values.yes_no("--default")),
    "cdi": Key("--cdi", "runtime.cdi", values.yes_no("--cdi")),
    "handler": Key("--handler", "runtime.handler", values.matching("--handler", HANDLER_NAME, HANDLER_FORMS)),
    "runtime_path": Key(
        "--runtime-path", "runtime.path", values.matching("--runtime-path", r"/\S+", "an absolute path on the host")
    ),
    "kubernetes.mode": Key(
        "--kubernetes-mode", "kubernetes.mode", values.choice("--kubernetes-mode", KUBERNETES_MODES)
    ),
    "only": Key("--only", "only", parse_only, many=True),
    "reboot": Key("--reboot", "reboot", values.choice("--reboot", RebootPolicy)),
    "hold": Key("--hold", "hold", values.yes_no("--hold")),
    "cuda": Key("--cuda", "cuda", parse_cuda),
    "mirror": Key("--mirror", "mirror", parse_mirror),
    "trust_keys": Key("--trust-key", "trust_keys", values.fingerprints, many=True),
    "proxy": Key("--proxy", "proxy", values.proxy),
    "allow_no_gpu": Key("--allow-no-gpu", "allow_no_gpu", values.yes_no("--allow-no-gpu")),
    "allow_gpu_in_use": Key("--allow-gpu-in-use", "allow_gpu_in_use", values.yes_no("--allow-gpu-in-use")),
    "allow_container_restart": Key(
        "--allow-container-restart", "allow_container_restart", values.yes_no("--allow-container-restart")
    ),
    "mig": Key("--mig", "mig", parse_mig, many=True),
    "expect.gpus": Key("--expect-gpus", "expect.gpus", values.count("--expect-gpus")),
    "expect.nvswitches": Key("--expect nvswitches", "expect.nvswitches", values.count("--expect nvswitches")),
    "expect.mig": Key("--expect mig", "expect.mig", parse_mig, many=True),
    **_expectation(),
    "site_checks": Key(
        "--site-checks", "site_checks", values.matching("--site-checks", r"/.+", "an absolute path, of a directory")
    ),
    **_toolkit_config(),
}
NESTED = frozenset(key.partition(".")[0] for key in KEYS if "." in key)


# What nothing reads where this is none.
IDLE: Mapping[str, tuple[str, ...]] = {
    "driver": ("flavour", "driver_source", "cuda", "mig"),
    "toolkit": ("toolkit_channel",),
}


def idle_keys(texts: Mapping[str, str]) -> frozenset[str]:
    """What nothing reads where these texts want no driver, or no toolkit: {"driver": "none"}: IDLE["driver"]."""
    none = (key for key in IDLE if texts.get(key, "").strip().lower() == "none")
    return frozenset(idle for key in none for idle in IDLE[key])


def put_all(spec: Spec, texts: Mapping[str, str]) -> Spec:
    """`spec` with flags over it: {"driver": "580"}. Raises one UsageError for all that are wrong."""
    faults = []
    for key, text in texts.items():
        try:
            spec = put(spec, key, text)
        except UsageError as fault:
            faults.append(fault)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise UsageError(
            f"{len(faults)} options are wrong",
            evidence="\n".join(f"{f.problem}: {f.evidence}" for f in faults),
            remedy="correct them; nothing was touched",
        )
    return spec


def put(spec: Spec, key: str, text: str) -> Spec:
    """`spec` with one key set from its text. Raises UsageError for an unknown key or value."""
    if key not in KEYS:
        known = (*KEYS, *RULES)
        said = f"{meant(key, known)}the keys are {', '.join(known)}"
        raise UsageError(f"{key} is not a key of a spec", evidence=said)
    value: Any = KEYS[key].parse(text)
    outer, _, inner = KEYS[key].field.partition(".")
    if inner:
        value = replace(getattr(spec, outer), **{inner: value})
    return replace(spec, **{outer: value})
