"""All that can be expected of a host, as it is there now. No name, address, serial or UUID of the node is in it."""

from __future__ import annotations

from gpunode.catalog.load import Catalog
from gpunode.checks.expect import seen
from gpunode.model.facts import HostFacts
from gpunode.model.report import NotApplicable


def snapshot(host: HostFacts, catalog: Catalog) -> tuple[dict[str, str], dict[str, str]]:
    """Key of `expect:` -> its text, and key -> why nothing can be expected of it: it is not known, or is not there."""
    all_of_it = {
        "gpus": seen.gpus(host),
        "model": seen.models(host, catalog),
        "driver": seen.driver(host),
        "flavour": seen.flavour(host),
        "cuda": seen.cuda(host),
        "toolkit": seen.toolkit(host),
        "engines": seen.engines(host),
        "handler": _handler(host),
        "default_runtime": seen.default_runtimes(host),
        "cdi": seen.cdi(host),
        "packages": seen.packages(host),
        "vbios": seen.vbios(host),
        "mig": seen.mig(host),
        "nics": seen.nics(host),
        "nvswitches": seen.nvswitches(host, catalog),
        "numa": seen.numa(host),
        "os": seen.os(host),
        "kernel": seen.kernel(host),
    }
    found = {key: ",".join(values) for key, values in all_of_it.items() if isinstance(values, tuple) and values}
    return found, {key: _why(values) for key, values in all_of_it.items() if key not in found}


def _handler(host: HostFacts) -> seen.Seen:
    """NVIDIA's, where every engine has it under its usual name; all other handlers are an engine's own."""
    found = seen.handlers(host)
    if isinstance(found, NotApplicable):
        return found
    return ("nvidia",) if "nvidia" in found else NotApplicable("not every engine has the handler nvidia")


def _why(values: seen.Seen) -> str:
    return values.reason if isinstance(values, NotApplicable) else "there is none"
