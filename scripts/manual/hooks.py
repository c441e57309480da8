"""What mkdocs asks while it builds the manual (mkdocs.yml names this file): pages that no file holds.

Events and their arguments: https://www.mkdocs.org/dev-guide/plugins/#events
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "manual"))

from command_pages import pages  # noqa: E402  # mkdocs loads this file by its path, so that its neighbours are not found

# A link that leaves docs/ leads to a file of the repository. On the site it leads to a copy of that file.
BEYOND = re.compile(
    r"\]\((?:\.\./)+(?P<path>(?:CONTRIBUTING|CHANGELOG)\.md|(?:examples|gpunode)/[^)#]+)(?P<anchor>#[^)]*)?\)"
)
ITS_OWN_PAGE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
INTO_DOCS = re.compile(r"\]\(docs/([^)]*)\)")
DOCS = ROOT / "docs"


VERBS = "Verbs and options"
SECTIONS = {"Tutorial": "tutorial", "How to": "how-to", "Reference": "reference", "Explanation": "explanation"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages that mkdocs.yml does not name: of each verb, and at a section's end what else is in its directory."""
    for section in config.nav or []:
        for title, items in section.items():
            for item in items if title in SECTIONS else ():
                if isinstance(item, dict) and VERBS in item:
                    item[VERBS] = [f"reference/commands/{name}.md" for name in pages()]
            if title in SECTIONS:
                there = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / SECTIONS[title]).glob("*.md"))
                items += [page for page in there if page not in items]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of verbs, made from the command line; the repository's own pages; the files that pages name."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/commands/{name}.md", content=text))
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = INTO_DOCS.sub(r"](\1)", (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, ITS_OWN_PAGE[name], content=text))
    named = {
        found["path"]
        for page in sorted(DOCS.rglob("*.md"))
        for found in BEYOND.finditer(page.read_text(encoding="utf-8"))
    }
    for path in sorted(named - set(ITS_OWN_PAGE)):
        files.append(File.generated(config, _copy(path), content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Its text, with links out of docs/ led to the site's own copies."""
    up = "../" * page.file.src_uri.count("/")
    return BEYOND.sub(lambda found: f"]({up}{_target(found['path'])}{found['anchor'] or ''})", markdown)


def _target(path: str) -> str:
    return ITS_OWN_PAGE.get(path) or _copy(path)


def _copy(path: str) -> str:
    """A browser shows .txt, and offers to download what it does not know."""
    return f"files/{path}.txt"


def on_post_build(config: MkDocsConfig) -> None:
    """The theme's page for a server's 404 names everything from the server's root, where this site need not be."""
    (Path(config.site_dir) / "404.html").unlink(missing_ok=True)
