"""`python -m benchmarks [NAME [ARGUMENT...]]`, which is `make bench ARGS="NAME ..."`.

Without a name, the one that says most: documents per second against the number of queries.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

from broker.pipeline.thisprocess import set_up_process

DIRECTORY = Path(__file__).parent
DEFAULT = "queries"


def main() -> None:
    paths = {path.stem: path for path in DIRECTORY.glob("*.py") if not path.stem.startswith("_")}
    name = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    if name not in paths:
        print(f"there is no benchmark {name!r}; there are:", file=sys.stderr)
        for each, path in sorted(paths.items()):
            print(f"  {each:<16} {first_line(path)}", file=sys.stderr)
        sys.exit(2)
    sys.path.insert(0, str(DIRECTORY.parent))
    set_up_process()
    sys.argv = [str(paths[name]), *sys.argv[2:]]
    runpy.run_path(str(paths[name]), run_name="__main__")


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


main()
