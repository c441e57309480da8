"""examples/hosts is what the recipes say, and every host says whether it was recorded or constructed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded.construct import EXAMPLES, readme, stream
from tests.recorded.hosts import RECIPES
from tests.recorded.nouns import Recipe


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.slug)
def test_the_example_is_what_its_recipe_makes(recipe: Recipe) -> None:
    folder = EXAMPLES / recipe.slug
    assert (folder / "facts.txt").read_bytes() == stream(recipe)
    assert (folder / "README.md").read_text(encoding="utf-8") == readme(recipe)


@pytest.mark.parametrize("folder", sorted(EXAMPLES.iterdir()), ids=lambda folder: folder.name)
def test_each_example_says_where_it_comes_from(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    constructed = folder.name in {recipe.slug for recipe in RECIPES}
    assert ("Constructed:" if constructed else "Recorded:") in text
