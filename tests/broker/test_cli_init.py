from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from broker.cli import main
from broker.settings.config import Settings, load_settings, parse_settings


def test_init_writes_settings_that_change_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["init", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    settings = load_settings(tmp_path / "new" / "xscl.toml")
    assert settings.http == Settings().http
    assert settings.feeds == ()


def test_what_init_shows_as_comments_are_settings(tmp_path: Path) -> None:
    CliRunner().invoke(main, ["init", str(tmp_path)])
    text = (tmp_path / "xscl.toml").read_text()
    commented_in = re.sub(r"(?m)^# (?=\[|[a-z_]+ = )", "", text)
    settings = parse_settings(commented_in, tmp_path / "xscl.toml")
    assert settings.smtp is not None
    assert settings.feeds[0].stream == "news"
    assert settings.http.port == Settings().http.port
    assert settings.lateness == Settings().lateness


def test_init_leaves_settings_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "xscl.toml").write_text("# mine")
    result = CliRunner().invoke(main, ["init", str(tmp_path)])
    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert (tmp_path / "xscl.toml").read_text() == "# mine"
