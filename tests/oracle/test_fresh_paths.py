"""The normal form asks a path from a variable where the oracle does: behind all positions."""

from __future__ import annotations

from hypothesis import assume, example, given
from hypothesis import strategies as st

import xscl
from oracle.freshpaths import fresh_paths, with_fresh, without_fresh
from oracle.paths import bindings
from oracle.tree import parse_tree

PREDICATES = st.sampled_from(
    [
        "[2]",
        "[last()]",
        "[position() < 3]",
        "[position() mod 2 = 1]",
        "[k]",
        "[k->{v}]",
        "[m->{v}]",
        "[k->{v} and position() > 1]",
        "[m[k->{v}][2]]",
        "[.//k->{v} = 'x']",
        "[m->{v}[k][last()]/k->{w}]",
    ]
)


@st.composite
def trees(draw: st.DrawFn) -> str:
    """Draw a document of few names, in which much stands beside its like."""

    def element(depth: int) -> str:
        name = draw(st.sampled_from("ckkmma"))
        inside = "".join(element(depth - 1) for _ in range(draw(st.integers(0, 3 if depth else 0))))
        return f"<{name}>{inside or draw(st.sampled_from(['', 'x']))}</{name}>"

    return f"<i>{element(3)}{element(3)}{element(3)}</i>"


@given(
    st.lists(PREDICATES, min_size=1, max_size=4), st.sampled_from(["//c", "//m", "/i/k"]), trees()
)
@example(["[k->{v}]", "[2]"], "//c", "<i><c><k/></c><c><k><a>x</a></k></c></i>")
@example(["[k->{v}]", "[m->{v}]", "[2]"], "//c", "<i><c><k/><m/></c><c><k><a/></k><m/></c></i>")
def test_paths_from_variables_stand_behind_positions(
    predicates: list[str], path: str, document: str
) -> None:
    numbered = [each.format(v=f"v{n}", w=f"w{n}") for n, each in enumerate(predicates)]
    variables = [
        f"{kind}{n}" for n, each in enumerate(numbered) for kind in "vw" if f"->{kind}" in each
    ]
    assume(variables)
    asked = " AND ".join(f"{variable}/a = t/b" for variable in variables)
    text = f"S{path}->d{''.join(numbered)} FOLLOWED BY {{{asked}, 1 h}} T->t"
    block = xscl.parse(text, id="q")[0].blocks[0]
    tree = parse_tree(document.encode())
    fresh = list(fresh_paths(block.path))
    assert len(fresh) == len(variables)
    alone = f"S{path}->d{''.join(numbered)}"
    own = xscl.parse(alone, id="q")[0].blocks[0]
    assert [name for name in block.variables if "/" not in name] == list(own.variables)
    chosen = bindings(own.path, tree, {})
    assert bindings(without_fresh(block.path), tree, {}) == chosen
    assert bindings(block.path, tree, {}) == {
        assignment for one in chosen for assignment in with_fresh(one, fresh, {})
    }
