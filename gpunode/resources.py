"""Where templates, the catalog and the probe lie, in a wheel and in a checkout; and the one jinja environment."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = Path(__file__).resolve().parent


@cache
def directory(name: str) -> Path:
    """The directory `name` ("templates", "examples"): inside the installed package, else beside it in the checkout.

    An editable install does not see hatchling's force-include, so both places are looked at. Raises FileNotFoundError.
    """
    for candidate in (PACKAGE / name, PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{name}/ is neither in {PACKAGE} nor beside it: the installation is incomplete")


@cache
def script(name: str) -> str:
    """POSIX sh that runs on hosts, by its path under shell/ and without .sh: "files/put"."""
    return text(f"shell/{name}.sh")


def text(relative: str) -> str:
    """A file that ships inside the package, e.g. "catalog/gpus.yaml"."""
    return (PACKAGE / relative).read_text(encoding="utf-8")


def template_text(name: str) -> str:
    """templates/<name> as it is, for what is no template: a style, a script."""
    return (directory("templates") / name).read_text(encoding="utf-8")


def render(template: str, **values: object) -> str:
    """templates/<template> filled in. A name that the template uses and nobody gave is an error, never empty text."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    # Imported late: jinja2 costs more than everything else `--help` needs.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(directory("templates")),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # config files, not HTML; every value is ours or quoted by a filter
    )
