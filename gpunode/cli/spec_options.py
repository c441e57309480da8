"""Flags and --spec -> Spec."""

from __future__ import annotations

from gpunode.cli.options import WantedOptions
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


def wanted_spec(options: WantedOptions) -> Spec:
    """The file's spec with the flags over it. Raises UsageError with every fault of either."""
    spec = load_spec(options.spec) if options.spec else Spec()
    return put_all(spec, flag_texts(options))


def flag_texts(options: WantedOptions) -> dict[str, str]:
    """The flags that were typed, by their key in a spec."""
    texts = {key: value for key in _TEXTS if (value := getattr(options, key)) is not None}
    texts |= {key: "true" for key in _SWITCHES if getattr(options, key)}
    if options.no_default:
        texts["default"] = "false"
    if options.hold is not None:
        texts["hold"] = "true" if options.hold else "false"
    if options.trust_key:
        texts["trust_keys"] = ",".join(options.trust_key)
    if options.mig:
        texts["mig"] = ",".join(options.mig)
    texts |= ctk_texts(tuple(options.ctk_set or ()))
    if options.expect_gpus is not None:
        texts["expect.gpus"] = options.expect_gpus
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
