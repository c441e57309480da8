"""What a check needs once it knows its host, loaded while it waits for the host."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread

from gpunode.errors import GpunodeError


@cache
def made_ready() -> Thread:
    """What judges and shows the facts is loaded while the first host is still looking for them."""

    def load() -> None:
        from gpunode.catalog.documents import read_all
        from gpunode.catalog.load import load_catalog
        from gpunode.checks import all_checks

        all_checks()
        for name in ("checks.agreement", "checks.causes", "checks.fixes", "engines.registry", "render.check_text"):
            import_module(f"gpunode.{name}")
        with suppress(GpunodeError):  # judged() asks for the catalog again, and says what is wrong with it
            load_catalog()
            read_all()

    loading = Thread(target=load, name="make ready", daemon=True)
    loading.start()
    return loading
