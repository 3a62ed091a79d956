"""What the site has besides docs/: the README, the examples, and files that are linked."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "readme.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "docs/decisions": "decisions/index.md",
    "examples/queries": "examples.md",
}
"""What becomes a page of its own, by its place in the repository."""

_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and every file that a page links to."""
    for source, name in PAGES.items():
        path = ROOT / source
        text = _index(path) if path.is_dir() else path.read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    icon = ROOT / "broker" / "web" / "assets" / "icon.svg"
    files.append(File.generated(config, "icon.svg", abs_src_path=str(icon)))
    linked = {
        _target(file.src_uri, target)
        for file in files.documentation_pages()
        for target, _ in _LINK.findall(file.content_string)
    }
    for source in sorted(linked):
        path = ROOT / source
        if path.is_file() and _site_name(source) == f"files/{source}.txt":
            text = path.read_text(encoding="utf-8")
            files.append(File.generated(config, _site_name(source), content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links lead to where the site has what they name."""

    def relink(found: re.Match[str]) -> str:
        name = _site_name(_target(page.file.src_uri, found[1]))
        start = posixpath.dirname(page.file.src_uri) or "."
        return posixpath.relpath(name, start) + (found[2] or "")

    return _LINK.sub(relink, markdown)


def _target(page: str, link: str) -> str:
    """Return what a link of a page names, by its place in the repository."""
    origin = next((source for source, name in PAGES.items() if name == page), f"docs/{page}")
    directory = origin if (ROOT / origin).is_dir() else posixpath.dirname(origin)
    return posixpath.normpath(posixpath.join(directory, link))


def _site_name(source: str) -> str:
    """Return what the site calls a file or directory of the repository."""
    if source in PAGES:
        return PAGES[source]
    name = source.removeprefix("docs/")
    return name if name != source else f"files/{source}.txt"


def _index(directory: Path) -> str:
    if directory.name == "decisions":
        rows = [f"- [{_title(path)}]({path.name})" for path in sorted(directory.glob("*.md"))]
        return "# Decisions\n\nWhat was chosen, what was refused, and why.\n\n" + "\n".join(rows)
    shown = [
        f"## {path.stem}\n\n```xscl\n{path.read_text(encoding='utf-8').strip()}\n```\n"
        for path in sorted(directory.glob("*.xscl"))
    ]
    return "# Examples\n\nQueries to start from.\n\n" + "\n".join(shown)


def _title(page: Path) -> str:
    first = page.read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("# ").replace("[", "").replace("]", "")
