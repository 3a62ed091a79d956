"""The documentation as a site: it builds without a warning, and has every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", directory],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_links_and_anchors_of_the_site_lead_somewhere(site: Path) -> None:
    assert (site / "tour.html").is_file()
    assert (site / "decisions" / "index.html").is_file()
    assert "same-story" in (site / "examples.html").read_text()
    assert (site / "files/broker/api/openapi.yaml.txt").is_file()


def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = set(re.findall(r'href="([\w-]+)\.html"', (site / "index.html").read_text()))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert pages | {"readme", "architecture", "changelog", "examples"} <= shown


def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img)\b[^>]*>", page.read_text()):
            if 'rel="canonical"' not in tag:
                assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), (page.name, tag)


def test_queries_are_coloured(site: Path) -> None:
    assert re.search(r'<span class="k">FOLLOWED BY</span>', (site / "index.html").read_text())
