from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.site_checks.places import trusted_directory


@pytest.fixture
def checks() -> Iterator[Path]:
    with trusted_directory() as directory:
        yield directory
