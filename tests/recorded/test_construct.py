"""examples/hosts is what the recipes make, and every host says whether it was recorded or constructed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded.construct import EXAMPLES, readme, stream
from tests.recorded.hosts import RECIPES
from tests.recorded.nouns import Recipe


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.slug)
def test_the_example_is_what_its_recipe_makes(recipe: Recipe) -> None:
    directory = EXAMPLES / recipe.slug
    assert (directory / "facts.txt").read_bytes() == stream(recipe)
    assert (directory / "README.md").read_text(encoding="utf-8") == readme(recipe)


@pytest.mark.parametrize("directory", sorted(EXAMPLES.iterdir()), ids=lambda directory: directory.name)
def test_each_example_says_where_it_comes_from(directory: Path) -> None:
    text = (directory / "README.md").read_text(encoding="utf-8")
    constructed = directory.name in {recipe.slug for recipe in RECIPES}
    assert ("Constructed:" if constructed else "Recorded:") in text
