"""What a check needs once it knows its host, loaded while it waits for the host."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread

from gpunode.errors import GpunodeError

# Any host is judged and shown with these,
_ALWAYS = ("checks.agreement", "checks.causes", "checks.fixes", "render.check_text")
# most with these: what checks import where they judge, and what a host without engines or findings has no use for.
_TABLES = ("age", "distro_ends", "driver_cves", "engine_ends", "kernels", "repositories", "system_limits")
_MOSTLY = ("engines.registry", "cli.errors", *(f"catalog.{table}" for table in (*_TABLES, "toolkit_cves", "xids")))


class Loading(Thread):
    """Loads, until it is told that somebody waits for it, or there is no more to load."""

    def __init__(self) -> None:
        super().__init__(name="make ready", daemon=True)
        self._waited_for = False

    def run(self) -> None:
        for load in _always():
            load()
        for load in _mostly():
            if self._waited_for:
                break
            load()
        gc.freeze()  # all of it stays: to look through it for garbage would take 15 ms once the answer is there

    def hurry(self) -> None:
        """What is not loaded by now is loaded where it is used, if it is used at all."""
        self._waited_for = True


@cache
def made_ready() -> Loading:
    """What judges and shows the facts is loaded while the first host is still looking for them."""
    loading = Loading()
    loading.start()
    return loading


def _always() -> Iterator[Callable[[], object]]:
    from gpunode.catalog.load import load_catalog
    from gpunode.checks import by_needs

    yield by_needs
    yield from map(_module, _ALWAYS)
    yield lambda: _unless_broken(load_catalog)


def _mostly() -> Iterator[Callable[[], object]]:
    from gpunode.catalog.documents import read_all
    from gpunode.foreign import read_toml

    yield from map(_module, _MOSTLY)
    yield lambda: read_toml("")  # its library is loaded with the first text
    yield lambda: import_module("xml.etree.ElementTree")  # and this one with nvidia-smi's first answer
    yield lambda: _unless_broken(read_all)


def _module(name: str) -> Callable[[], object]:
    return lambda: import_module(f"gpunode.{name}")


def _unless_broken(read: Callable[[], object]) -> None:
    with suppress(GpunodeError):  # judged() asks for the catalog again, and says what is wrong with it
        read()
