"""What a host is expected to have, each word of it parsed once: `expect:` of a spec, --expect, and a snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpunode.errors import UsageError
from gpunode.model.driver import ModuleFlavour

MOST = 64  # values in one list: a node has fewer GPUs, engines and kinds of network ports
MOST_PACKAGES = 512  # of driver, CUDA, toolkit and engines; CUDA's alone are some hundred
_ENGINE = r"[a-z0-9][a-z0-9.-]{0,40}(?:@[\w.-]{1,60})?"
_HANDLER = r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}"
_VERSION = r"[0-9][\w.+~-]{0,60}"


def _one(key: str, pattern: str, form: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if re.fullmatch(pattern, word := text.strip(), re.ASCII):
            return word
        raise _odd(key, text, form)

    return parse


def _many(key: str, pattern: str, form: str, most: int = MOST) -> Callable[[str], tuple[str, ...]]:
    """Values with commas, in order and each once."""

    def parse(text: str) -> tuple[str, ...]:
        words = [word.strip() for word in text.split(",")]
        odd = next((word for word in words if not re.fullmatch(pattern, word, re.ASCII)), None)
        if odd is not None or len(words) > most:
            raise _odd(key, text if odd is None else odd, f"{form}; at most {most} with commas")
        return tuple(sorted(set(words)))

    return parse


def _odd(key: str, text: str, form: str) -> UsageError:
    return UsageError(f"--expect {key}={text[:80]!r} is not of the right form", evidence=f"it is {form}")


def parse_expected_flavour(text: str) -> ModuleFlavour:
    """Raises UsageError for what is no flavour of the kernel modules."""
    words: dict[str, ModuleFlavour] = {"open": "open", "proprietary": "proprietary"}
    if (word := text.strip().lower()) in words:
        return words[word]
    raise _odd("flavour", text, "open or proprietary")


# Key of `expect:` -> the parser of its text; gpus and nvswitches are counts, mig is a layout (specfile/keys.py).
FORMS: dict[str, Callable[[str], object]] = {
    "model": _many("model", r"[\w .()+/-]{1,60}", "a GPU's name or PCI device id: H100 SXM5 80GB, or 2330"),
    "driver": _one("driver", r"[0-9]{3}(?:\.[0-9]{2,3}){0,2}", "a branch such as 580, or a version such as 580.178.04"),
    "flavour": parse_expected_flavour,
    "cuda": _one("cuda", r"[0-9]{1,2}\.[0-9]{1,2}\+?", "a version such as 13.0, or 12.8+ for that or newer"),
    "toolkit": _one("toolkit", _VERSION, "a version such as 1.20.0"),
    "engines": _many("engines", rf"{_ENGINE}(?:={_VERSION})?", "an engine, or ENGINE=VERSION: docker=28.5.2"),
    "handler": _one("handler", _HANDLER, "the name of a handler: nvidia"),
    "default_runtime": _many(
        "default_runtime",
        rf"(?:{_ENGINE}=)?{_HANDLER}",
        "a handler for every engine, or ENGINE=HANDLER: docker=nvidia",
    ),
    "cdi": _many("cdi", rf"(?:{_ENGINE}=)?(?:on|off)", "on or off for every engine, or ENGINE=on: docker=on"),
    "packages": _many(
        "packages",
        r"[A-Za-z0-9][\w.+:-]{0,120}=[0-9][\w.+:~^-]{0,120}",
        "NAME=VERSION as the package manager has them: nvidia-open=595.91.07-1",
        MOST_PACKAGES,
    ),
    "vbios": _many(
        "vbios", r"[0-9a-f]{4}=[0-9A-Za-z.]{1,40}", "PCI device id and version of the VBIOS: 2330=96.00.A5.00.03"
    ),
    "nics": _many("nics", r"[0-9]{1,3}(?:x[0-9]{1,5})?", "how many RDMA ports, 8, or how many at which Gb/s, 8x400"),
    "numa": _many("numa", r"[0-9]{1,3}=[0-9]{1,3}", "NODE=COUNT, how many GPUs are at each NUMA node: 0=4,1=4"),
    "os": _one("os", r"[a-z0-9][a-z0-9._-]{0,40}(?: [\w.-]{1,20})?", "ID and VERSION_ID of os-release: ubuntu 24.04"),
    "kernel": _one("kernel", r"[0-9][\w.+~-]{0,80}", "a release as uname -r prints it"),
}
LISTS = ("model", "engines", "default_runtime", "cdi", "packages", "vbios", "nics", "numa")
