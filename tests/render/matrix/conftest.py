"""A Chromium for the tests of the fleet's page, and pages to open in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser, for_tests
from tests.render.matrix.fleets import fleet
from tests.render.matrix.in_browser import written


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with for_tests(tmp_path_factory.mktemp("chromium"), "the fleet's page") as one:
        yield one


@pytest.fixture
def browser(one_browser: Browser) -> Iterator[Browser]:
    """No test may end with an error on the console, a refusal of the policy or a request."""
    one_browser.resize(1400, 900)
    one_browser.emulate()
    yield one_browser
    assert one_browser.complaints() == []


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Number of hosts -> address of their page."""
    directory = tmp_path_factory.mktemp("pages")
    return {number: written(fleet(number), directory / f"{number}.html") for number in (100, 1000, 5000)}
