"""Hypothesis strategies for queries without errors, as text, and for what happens to texts."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["commented", "conditions", "mutations", "plain_paths", "queries"]

_NAMES = st.sampled_from(["a", "b", "c", "dc:d", "*", "*:e", "atom:*", "from", "and-so"])
_ATTRIBUTES = st.sampled_from(["@h", "@k", "@*", "@dc:k"])
_SLASHES = st.sampled_from(["/", "//"])
_STRINGS = st.sampled_from(["'x'", '"y"', "'it''s'", "''", "'1.0'", '"\'"'])
_NUMBERS = st.sampled_from(["1", "2.5", "-3", ".5", "1e3"])
_LITERALS = st.one_of(_STRINGS, _NUMBERS)
_COMPARISONS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_WINDOWS = st.sampled_from(["1 h", "INF", "PT6H", "2.5 days", "90 min", "1us", "P1DT1H", "$w"])
_STREAMS = st.sampled_from(["S", "T", "news", "*", "select"])
_POSITIONS = st.sampled_from(
    [
        "1",
        "last()",
        "position() < 3",
        "last() - 1",
        "position() = last()",
        "last() > 2",
        "position() mod 2 = 1",
        "last() + -$n * 2",
        "count(../*)",
        "not(position() - 1 = @k)",
    ]
)
_OPAQUE = st.sampled_from(
    ["count(a) > 1", "a = b", "../a", "sum(a) + 1 > 2 * 3", "not(a | b)", "string(a) = 'x'"]
)


@st.composite
def plain_paths(draw: st.DrawFn, relative: bool = True) -> str:
    """Return a path of child, descendant, attribute and self steps, without predicates."""
    steps = draw(st.lists(_NAMES, min_size=1, max_size=3))
    text = draw(st.sampled_from(["", "./", ".//"])) if relative else draw(_SLASHES)
    for index, step in enumerate(steps):
        text += (draw(_SLASHES) if index else "") + step
    if draw(st.integers(0, 4)) == 0:
        text += draw(_SLASHES) + draw(st.one_of(_ATTRIBUTES, st.just("text()"), st.just(".")))
    return text


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2, opaque: bool = True) -> str:
    """Return what can stand between brackets, without bindings."""
    kind = draw(st.integers(0, 9 if depth else 5))
    path = draw(st.one_of(plain_paths(), st.just("."), _ATTRIBUTES))
    if kind < 2:
        return path
    if kind == 2:
        return f"{path} {draw(_COMPARISONS)} {draw(_LITERALS)}"
    if kind == 3:
        function = draw(st.sampled_from(["contains", "starts-with", "ends-with", "matches"]))
        return f"{function}({path}, 'x')"
    if kind == 4:
        function = draw(st.sampled_from(["lower-case", "string-length", "normalize-space"]))
        return f"{function}({path}) {draw(_COMPARISONS)} {draw(_LITERALS)}"
    if kind == 5:
        return draw(_OPAQUE if opaque else st.just("a"))
    left, right = draw(conditions(depth - 1, opaque)), draw(conditions(depth - 1, opaque))
    return {
        6: f"{left} and {right}",
        7: f"{left} or {right}",
        8: f"({left} or {right}) and {left}",
        9: f"not({left})",
    }[kind]


class _Names:
    """Hands out variable names, each once."""

    def __init__(self) -> None:
        self.bound: list[list[str]] = []

    def fresh(self) -> str:
        name = f"x{sum(map(len, self.bound)) + 1}" + "'" * (len(self.bound) % 2)
        self.bound[-1].append(name)
        return name


@st.composite
def _blocks(draw: st.DrawFn, names: _Names) -> str:
    names.bound.append([])
    stream = draw(_STREAMS)
    if draw(st.integers(0, 5)) == 0:
        return f"{stream}{draw(st.sampled_from(['->', ' AS ']))}{names.fresh()}"
    text = stream + draw(plain_paths(relative=False))
    has_leaf = any(text.endswith(leaf) for leaf in ("text()", "."))
    for _ in range(draw(st.integers(0, 2))):
        text += f"[{draw(st.one_of(conditions(), _POSITIONS))}]"
    for _ in range(draw(st.integers(0 if has_leaf else 1, 2))):
        inner = draw(plain_paths())
        bound = f"{inner}->{names.fresh()}"
        ending = draw(st.sampled_from(["", " = 'x'", " and a", "[b]"]))
        text += f"[{bound}{ending}]"
    if draw(st.booleans()) or not names.bound[-1]:
        text += f"->{names.fresh()}"
    return text


@st.composite
def _sides(draw: st.DrawFn, known: list[str]) -> str:
    text = draw(st.sampled_from(known))
    if draw(st.booleans()):
        path = draw(plain_paths(relative=False))
        text += path
    return draw(
        st.sampled_from(
            ["{}", "{}", "lower-case({})", "tokenize({}, ',')", "host({})", "substring({}, 2)"]
        )
    ).format(text)


@st.composite
def _predicates(draw: st.DrawFn, left: list[str], right: list[str]) -> str:
    terms = []
    for _ in range(draw(st.integers(0, 3))):
        comparison = draw(st.sampled_from(["=", "=", "!=", "<", ">="]))
        other = draw(st.one_of(_sides(right), _sides(right), _LITERALS, st.just("$p")))
        first, second = draw(_sides(left)), other
        if draw(st.booleans()):
            first, second = second, first
        terms.append(f"{first} {comparison} {second}")
    text = ""
    for term in terms:
        text = f"{text} {draw(st.sampled_from(['AND', 'OR', 'and']))} {term}" if text else term
    return f"({text})" if text and draw(st.booleans()) else text


@st.composite
def _operands(draw: st.DrawFn, names: _Names, depth: int) -> tuple[str, list[str]]:
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(_blocks(names)), names.bound[-1]
    left, left_names = draw(_operands(names, depth - 1))
    right, right_names = draw(_operands(names, depth - 1))
    predicate = draw(_predicates(left_names, right_names))
    keyword = draw(st.sampled_from(["FOLLOWED BY", "JOIN", "join", "FOLLOWED BY_"]))
    text = f"({left}) {keyword} {{{predicate}, {draw(_WINDOWS)}}} ({right})"
    return text, left_names + right_names


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Return a statement without errors."""
    source, names = draw(_operands(_Names(), draw(st.integers(0, 2))))
    name = draw(st.sampled_from(names))
    select = draw(
        st.sampled_from(
            [
                "",
                "*",
                name,
                f"{name}/a, {name}",
                f"<r k='{{{name}}}'>{{{name}/b}} text {{{{}}}}</r>",
                f"<r>\n  <s>{{count({name}), dur()}}</s>\n</r>",
            ]
        )
    )
    publish = draw(st.sampled_from(["", " PUBLISH out"]))
    if not select and not publish:
        return source
    if draw(st.booleans()):
        return f"SELECT {select or '*'} FROM {source}{publish}"
    return f"FROM {source}{f' SELECT {select}' if select else ''}{publish}"


_NOISE = st.sampled_from(
    [
        *"[](){}<>;,@*$'\"/|&-=! \n#",
        *("->", "-->", "//", "::", "(:", ":)", "-- ", "{{", "]]>", "<!--", "not(", "INF", "AND"),
        *("SELECT", "FROM", "JOIN", "FOLLOWED BY", "PUBLISH", "OR"),
        *("\x00", "\ud800", "é", "💥", "\u202e"),
    ]
)


@st.composite
def mutations(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Return a text with a few stretches deleted, doubled, moved or replaced by noise."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        middle = draw(st.one_of(st.just(""), st.just(text[start:end] * 2), _NOISE))
        text = text[:start] + middle + text[end:]
    return text


@st.composite
def commented(draw: st.DrawFn, text: str, places: list[int]) -> tuple[str, list[str]]:
    """Return a text with comments put at some of the places, and these comments."""
    comments: list[str] = []
    pieces: list[str] = []
    last = 0
    for place in sorted(draw(st.lists(st.sampled_from(places), max_size=5, unique=True))):
        pieces.append(text[last:place])
        last = place
        kind = draw(st.integers(0, 3))
        number = len(comments)
        comment = f"(: c{number} :)" if kind else f"-- c{number}"
        comments.append(comment)
        pieces.append([f" {comment}\n", f" {comment} ", f"\n{comment}\n", f"\n\n{comment} "][kind])
    pieces.append(text[last:])
    return "".join(pieces), comments
