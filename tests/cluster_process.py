"""A process with a Spark cluster of two executors on this machine, and what is tried on it.

`python cluster_process.py DIRECTORY` prints one line of JSON: by name, what each trial found.
"""

from __future__ import annotations

from collections.abc import Iterator

MASTER = "local-cluster[2,1,1024]"
DOCUMENTS = 300
BATCH = 60

QUERIES = {
    "pairs": "S//a[v->x1] FOLLOWED BY {x1 = x2, 2 h} S//a[v->x2]",
    "triples": (
        "(S//a[v->x1] FOLLOWED BY {x1 = x2, 40 m} S//a[v->x2])"
        " FOLLOWED BY {x2 = x3, 40 m} S//a[v->x3]"
    ),
    "rare": "S//rare JOIN {, 30 m} S//rare",
    "same": "S//a[v->x1] JOIN {x1 = x2, 15 m} S//a[w->x2] PUBLISH same",
    "again": "same//v->p FOLLOWED BY {p = x2, 1 h} S//a[v->x2]",
    "filter": "S//a[v = '7']",
}


def documents() -> Iterator[dict[str, str]]:
    for i in range(DOCUMENTS):
        inner = f"<v>{i * i % 83}</v><w>{i * 7 % 61}</w>" + ("<rare/>" if i % 11 == 0 else "")
        time = f"2026-01-0{1 + i // 144}T{i // 6 % 24:02}:{i % 6}0:00Z"
        yield {"stream": "S", "time": time, "xml": f"<a>{inner}</a>"}
