"""Flags and --spec -> Spec."""

from __future__ import annotations

from gpunode.cli.options import CheckOptions, SpecOptions
from gpunode.errors import UsageError
from gpunode.model.spec import Spec, toolkit_field
from gpunode.specfile import load_spec, put_all

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
_SWITCHES = ("cdi", "allow_no_gpu", "allow_container_restart", "allow_gpu_in_use")


def wanted_spec(options: SpecOptions | CheckOptions) -> Spec:
    """The file's spec with the flags over it. Raises UsageError with every fault of either."""
    spec = load_spec(options.spec) if options.spec else Spec()
    return put_all(spec, flag_texts(options))


def flag_texts(options: SpecOptions | CheckOptions) -> dict[str, str]:
    """The flags that were typed, by their key in a spec."""
    texts = {key: value for key in _TEXTS if (value := getattr(options, key, None)) is not None}
    texts |= {key: "true" for key in _SWITCHES if getattr(options, key, False)}
    if options.no_default:
        texts["default"] = "false"
    texts |= ctk_texts(tuple(options.ctk_set or ()))
    return texts | (_only_checked(options) if isinstance(options, CheckOptions) else _only_set_up(options))


def _only_checked(options: CheckOptions) -> dict[str, str]:
    """Raises UsageError for a setting of the toolkit that no check reads: it would be ignored."""
    unread = [word for word in options.ctk_set or () if set(ctk_texts((word,))) != {"toolkit_config.no_cgroups"}]
    if unread:
        raise UsageError(
            f"--ctk-set {unread[0]!r} is nothing that a check reads",
            evidence="of the toolkit's settings it reads no-cgroups",
            remedy="leave it out",
        )
    return {} if options.expect_gpus is None else {"expect.gpus": options.expect_gpus}


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
    texts = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                f"--ctk-set {word!r} has no value", evidence="its form is KEY=VALUE", remedy="for example mode=cdi"
            )
        texts[f"toolkit_config.{toolkit_field(name.strip())}"] = value
    return texts
