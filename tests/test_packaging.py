"""What is built is what is installed: wheel, sdist, container and systemd unit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from broker.settings.config import parse_settings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("broker", "feeds", "joins", "templates", "xpath_eval", "xscl")
CLONED = (*PACKAGES, "benchmarks", "client", "deploy", "docs", "editors", "examples", "tests")
LOOK = """
import sys
from importlib import resources
import pygments.lexers
import broker
from broker.api.description import description
from broker.demo.examples import examples_directory
from broker.web import pages

installed, examples = sys.argv[1], examples_directory()
assert broker.__file__.startswith(installed) and str(examples).startswith(installed)
assert len(list(examples.glob("queries/*.xscl"))) > 3 and list(examples.glob("feeds/*/*"))
assert description()["openapi"].startswith("3.1")
templates = resources.files("broker.delivery").joinpath("templates").iterdir()
assert {"mail.html.j2", "mail.txt.j2"} <= {each.name for each in templates}
assert resources.files("broker.web").joinpath("assets/style.css").is_file()
assert pygments.lexers.get_lexer_by_name("xscl")
"""
QUERY = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XSCL_", "PYTHON"))}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", directory)
    return directory


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel from the build, and the rest from where tests run.

    Resolving and downloading what the wheel requires is not tried: that takes a network.
    """
    directory = tmp_path_factory.mktemp("installed")
    venv.create(directory, with_pip=False)
    (wheel,) = built.glob("*.whl")
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (site,) = directory.glob("lib/python*/site-packages")
    # Searched after the environment's own; .pth files in there (our checkout's) are not read.
    (site / "rest.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    ours = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    examples = {
        f"broker/demo/{path.relative_to(ROOT)}"
        for path in (ROOT / "examples").rglob("*")
        if path.is_file()
    }
    assert names == ours | examples
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {"broker/api/openapi.yaml", "broker/web/templates/base.html.j2"} <= names


def test_the_sdist_has_what_building_and_testing_take_and_no_leftovers(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "docs/index.md", "deploy/Dockerfile"}
    assert wanted | {"tests/test_packaging.py", "examples/queries/same-story.xscl"} <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]


def test_an_empty_clone_lacks_nothing() -> None:
    """What is here, and passed over by git, would be missing there."""
    asked = ("ls-files", "--others", "--ignored", "--exclude-standard", "--", *CLONED)
    passed_over = run("git", *asked).splitlines()
    assert [name for name in passed_over if "__pycache__" not in name] == []


def test_an_installed_broker_does_not_need_the_checkout(installed: Path, tmp_path: Path) -> None:
    xscl = installed / "bin" / "xscl"
    assert PROJECT["project"]["version"] in run(xscl, "--version", cwd=tmp_path)
    (tmp_path / "q.xscl").write_text(QUERY)
    assert "0 errors" in run(xscl, "check", "q.xscl", cwd=tmp_path)
    run(xscl, "init", cwd=tmp_path)
    assert "listening" not in run(xscl, "run", "--help", cwd=tmp_path)
    run(installed / "bin" / "python", "-I", "-c", LOOK, installed, cwd=tmp_path)


def test_an_installed_broker_evaluates_recorded_documents(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "q.xscl").write_text(QUERY)
    item = {"stream": "news", "xml": "<item><title>t</title></item>"}
    lines = [json.dumps({**item, "time": f"2026-01-0{day}T00:00Z"}) for day in (1, 2)]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    arguments = ("replay", "q.xscl", "--documents", "lines.jsonl", "--no-spark")
    assert '"query": "q"' in run(installed / "bin" / "xscl", *arguments, cwd=tmp_path)


ALONE = """
import importlib.util
import sys
import xscl.client

assert xscl.client.__file__.startswith(sys.argv[1])
assert all(importlib.util.find_spec(name) is None for name in ("broker", "feeds", "joins"))
loaded = {"lxml", "pyarrow", "pandas", "pyspark", "duckdb"} & set(sys.modules)
assert not loaded, loaded
"""


@pytest.fixture(scope="module")
def built_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("client")
    run(sys.executable, "-m", "hatchling", "build", "-d", directory, cwd=ROOT / "client")
    return directory


def test_the_client_is_a_distribution_of_the_same_source(built_client: Path) -> None:
    (wheel,) = built_client.glob("*.whl")
    ours = {
        f"xscl/client/{path.relative_to(ROOT / 'xscl' / 'client')}": path.read_bytes()
        for path in (ROOT / "xscl" / "client").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert {name: archive.read(name) for name in names} == ours
    (sdist,) = built_client.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {
            member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()
        }
    assert set(ours) | {"LICENSE", "README.md", "pyproject.toml"} <= files


def test_the_client_brings_aiohttp_alone() -> None:
    client = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    assert (ROOT / "client" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert client["version"] == PROJECT["project"]["version"]
    (aiohttp,) = client["dependencies"]
    assert aiohttp in PROJECT["project"]["dependencies"]
    assert client["requires-python"] == PROJECT["project"]["requires-python"]


def test_an_installed_client_needs_nothing_of_the_broker(
    built_client: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "environment"
    venv.create(directory, with_pip=False)
    (wheel,) = built_client.glob("*.whl")
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (site,) = directory.glob("lib/python*/site-packages")
    (site / "rest.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(python, "-I", "-c", ALONE, directory, cwd=tmp_path)


def test_the_container_is_built_from_files_that_there_are() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
        for name in line.split()
    ]
    assert set(PACKAGES) <= set(copied)
    assert all((ROOT / name).exists() for name in copied)
    admitted = (DEPLOY / "Dockerfile.dockerignore").read_text()
    assert all(f"!{name}\n" in admitted for name in copied)


def test_the_container_runs_as_nobody_in_particular_and_is_watched() -> None:
    stage = (DEPLOY / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    for wanted in ("USER xscl", "VOLUME /var/lib/xscl", "HEALTHCHECK", "STOPSIGNAL SIGTERM"):
        assert wanted in stage
    settings = parse_settings((DEPLOY / "xscl.toml").read_text(), DEPLOY / "xscl.toml")
    assert f"EXPOSE {settings.http.port}\n" in stage
    assert str(settings.data) == "/var/lib/xscl"


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "xscl.service").read_text()
    assert "ExecStart=/opt/xscl/bin/xscl --config /etc/xscl/xscl.toml run\n" in text
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # the machine has no systemd; what the unit says is looked at above
    unit = tmp_path / "xscl.service"
    unit.write_text(text.replace("/opt/xscl/bin/xscl", shutil.which("true") or "/bin/true"))
    assert run(analyze, "verify", "--man=no", unit, cwd=tmp_path) == ""
    exposure = run(analyze, "security", "--offline=true", unit, cwd=tmp_path)
    (level,) = re.findall(r"exposure level for xscl.service: ([\d.]+)", exposure)
    assert float(level) < 2
