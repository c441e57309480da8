"""Where templates, the catalog and the probe lie: in a wheel, a checkout or a zipapp; and the one jinja environment.

Whatever loaded this module reads them (`get_data` of PEP 302, which importlib.resources uses as well, without its
15 ms): a file system's loader and a zipapp's alike.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

TYPE_CHECKING = False  # typing is 3 ms, and a check has not yet begun to look at its host (cli/start/first_look.py)
if TYPE_CHECKING:
    from typing import Any

    from jinja2 import Environment

PACKAGE = os.path.dirname(__file__)  # as the loader knows it: what a zipapp holds has no absolute path of its own


def archive() -> str | None:
    """The absolute path of the zipapp that gpunode runs from; None where it is installed as files."""
    path = getattr(_loader(), "archive", None)  # zipimport.zipimporter
    return os.path.abspath(path) if isinstance(path, str) else None


def data(relative: str) -> bytes:
    """A file that ships inside the package, as bytes. Raises OSError."""
    found: bytes = _loader().get_data(os.path.join(PACKAGE, *relative.split("/")))
    return found


@cache
def script(name: str) -> str:
    """POSIX sh that runs on hosts, by its path under shell/ and without .sh: "files/put"."""
    return text(f"shell/{name}.sh")


def text(relative: str) -> str:
    """A file that ships inside the package, e.g. "catalog/gpus.yaml". Raises OSError."""
    return data(relative).decode()


def names(relative: str) -> tuple[str, ...]:
    """The files of a directory inside the package, sorted."""
    if archive() is None:
        return tuple(sorted(entry.name for entry in os.scandir(os.path.join(PACKAGE, relative)) if entry.is_file()))
    from importlib.resources import files

    return tuple(sorted(entry.name for entry in files("gpunode").joinpath(relative).iterdir() if entry.is_file()))


def template_text(name: str) -> str:
    """templates/<name> as it is, for what is no template: a style, a script.

    An editable install does not see hatchling's force-include: there they lie next to the package. Raises OSError.
    """
    for root in ("templates", "../templates"):
        try:
            return text(f"{root}/{name}")
        except FileNotFoundError:
            continue
        except OSError:  # what a zipapp does not hold: it has no file next to it
            break
    raise FileNotFoundError(f"templates/{name} is neither in {PACKAGE} nor next to it: the installation is incomplete")


def render(template: str, **values: object) -> str:
    """templates/<template> filled in. A name that the template uses and nobody gave is an error, never empty text."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    # Imported late: jinja2 costs more than everything else `--help` needs.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # config files, not HTML; every value is ours or quoted by a filter
    )


@cache
def _loader() -> Any:
    return import_module(__name__).__spec__.loader  # type: ignore[union-attr]  # what was imported has a loader
