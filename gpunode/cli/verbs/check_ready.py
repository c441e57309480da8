"""What a check needs once it knows its host, loaded while it waits for the host."""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread

from gpunode.errors import GpunodeError

# What checks import where they judge, and most hosts make them judge.
_TABLES = ("age", "distro_ends", "driver_cves", "engine_ends", "kernels", "repositories", "system_limits")
_MODULES = (
    *("checks.agreement", "checks.causes", "checks.fixes", "engines.registry", "render.check_text", "cli.errors"),
    *(f"catalog.{table}" for table in (*_TABLES, "toolkit_cves", "xids")),
)


@cache
def made_ready() -> Thread:
    """What judges and shows the facts is loaded while the first host is still looking for them."""

    def load() -> None:
        from gpunode.catalog.documents import read_all
        from gpunode.catalog.load import load_catalog
        from gpunode.checks import check_ids
        from gpunode.foreign import read_toml

        check_ids()
        for name in _MODULES:
            import_module(f"gpunode.{name}")
        read_toml("")  # its library is loaded with the first text
        with suppress(GpunodeError):  # judged() asks for the catalog again, and says what is wrong with it
            load_catalog()
            read_all()
        gc.freeze()  # all of it stays: to look through it for garbage would take 15 ms once the answer is there

    loading = Thread(target=load, name="make ready", daemon=True)
    loading.start()
    return loading
