from __future__ import annotations

import csv
import gzip
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.api_room import match
from support.served_room import ServedRoom

from broker.cli import main
from broker.matching.costs.budget import Pause
from broker.registry.subscription import Destination, Options

PULL = Destination.parse("pull")
SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedRoom]:
    served = ServedRoom(tmp_path / "data")
    yield served
    served.close()


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    path = tmp_path / "same.xscl"
    path.write_text(SAME)
    return path


def test_a_query_over_its_budget_is_shown_with_the_reason_and_can_be_resumed(
    served: ServedRoom, query_file: Path
) -> None:
    served.xscl("register", str(query_file))
    registry = served.room.registry
    registry.pause([Pause("same", registry.query("same").revision, 7, "too many matches")])
    since = "is paused from document 7 on: too many matches"
    assert f"same {since}\n" in served.xscl("list").stderr
    assert f"it {since}\n" in served.xscl("show", "same").stdout
    assert "same is active from document 1 on" in served.xscl("resume", "same").stderr
    assert "too many matches" not in served.xscl("show", "same").stdout


def test_a_query_lives_from_register_to_remove(served: ServedRoom, query_file: Path) -> None:
    assert "registered same" in served.xscl("register", str(query_file)).stderr
    assert "same is paused" in served.xscl("pause", "same").stderr
    again = served.xscl("register", str(query_file)).stderr
    assert "same stays paused from document 1 on\nhint: `xscl resume same` makes it go on" in again
    assert served.xscl("list").stdout.splitlines()[1].split()[:3] == ["same", "paused", "0"]
    assert "same is active" in served.xscl("resume", "same").stderr
    assert "removed same" in served.xscl("remove", "same").stderr
    result = served.xscl("show", "same")
    assert (result.exit_code, result.stderr) == (1, "error: no query 'same'\n")


def test_a_query_in_which_something_is_decided_is_registered_beside_others(
    served: ServedRoom, query_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "silent.xscl"
    path.write_text("news//item->a NOT FOLLOWED BY {a/feed = b/feed, 6 h} news//item->b GRACE 1 h")
    dry = served.xscl("register", str(path), "--dry-run").stdout
    assert "registered silent" in served.xscl("register", str(path)).stderr
    assert "decision 1: block 0 NOT FOLLOWED BY block 1 within 6 hours" in dry
    assert "decision (block 0 NOT FOLLOWED BY block 1 within 6 hours): of its own" in dry
    assert "registered same" in served.xscl("register", str(query_file)).stderr
    served.xscl("pause", "silent")
    assert "silent is active" in served.xscl("resume", "silent").stderr
    path.write_text(path.read_text().removesuffix("GRACE 1 h"))
    told = "  warning: it says no GRACE, so that each answer waits 1 day for late documents\n"
    assert served.xscl("register", str(path)).stderr.startswith(told)


def test_a_directory_of_queries_is_registered_at_once(served: ServedRoom, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.xscl").write_text(SAME)
    assert served.xscl("register", str(tmp_path)).exit_code == 0
    rows = json.loads(served.xscl("list", "--format", "json").stdout)
    assert [row["id"] for row in rows] == ["one", "two"]


def test_a_dry_run_tells_the_cost_and_registers_nothing(
    served: ServedRoom, query_file: Path, tmp_path: Path
) -> None:
    for number in range(3):
        document = tmp_path / "item.xml"
        document.write_text("<item><title>One</title></item>")
        assert served.xscl("publish", "news", str(document), "--key", f"{number}").exit_code == 0
    result = served.xscl("register", str(query_file), "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("same")
    assert json.loads(served.xscl("list", "--format", "json").stdout) == []
    query_file.write_text("news//item->")
    assert served.xscl("register", str(query_file), "--dry-run").exit_code == 1


def test_one_id_does_not_name_two_queries(served: ServedRoom, query_file: Path) -> None:
    query_file.write_text(f"{SAME}; {SAME}")
    result = served.xscl("register", str(query_file), "--id", "mine")
    assert result.exit_code == 2
    assert "there are 2" in result.stderr


def test_a_query_that_does_not_parse_is_shown_with_its_place(
    served: ServedRoom, query_file: Path
) -> None:
    query_file.write_text("news//item->a FOLOWED BY {, 1 h} news//item")
    result = served.xscl("register", str(query_file))
    assert result.exit_code == 1
    assert result.stderr.startswith("error[XS")
    assert "same.xscl:1:" in result.stderr
    assert "^" in result.stderr


def test_what_is_shown_of_a_query_has_its_subscribers(served: ServedRoom, query_file: Path) -> None:
    served.xscl("register", str(query_file))
    made = served.xscl("subscribe", "same", "https://example.org/hook", "--no-test")
    assert "only if all documents of the match came after 0" in made.stderr
    name, secret = made.stdout.splitlines()
    assert name.startswith("sub_")
    assert secret.startswith("whsec_")
    served.xscl("subscribe", "same", "ann@example.org", "--no-test")
    shown = served.xscl("show", "same").stdout
    assert "same  active, 0 matches" in shown
    assert "FOLLOWED BY" in shown
    assert "https://example.org/hook" in shown
    assert "ann@example.org" in shown
    (name, *_) = (word for word in shown.split() if word.startswith("sub_"))
    assert served.xscl("remove", name).exit_code == 0
    assert name not in served.xscl("show", "same").stdout


def test_parameters_are_given_by_name(served: ServedRoom, query_file: Path) -> None:
    query_file.write_text("news//item[author = $who]")
    served.xscl("register", str(query_file))
    assert served.xscl("subscribe", "same", "pull", "-p", "who=Ann").exit_code == 0
    missing = served.xscl("subscribe", "same", "pull")
    assert missing.exit_code == 1
    assert "who" in missing.stderr
    assert served.xscl("subscribe", "same", "pull", "-p", "who").exit_code == 2


def test_documents_are_published_from_files_and_from_standard_input(
    served: ServedRoom, tmp_path: Path
) -> None:
    (tmp_path / "item.xml").write_text("<item/>")
    line = json.dumps({"stream": "news", "key": "b", "xml": "<item>b</item>"})
    file = str(tmp_path / "item.xml")
    result = served.xscl("publish", "news", "--key", "a", file, "-", given=line.encode())
    assert result.stdout == "1\taccepted\ta\n2\taccepted\tb\n"
    assert result.stderr == "2 taken, 0 refused\n"
    again = served.xscl("publish", "news", "--key", "a", file)
    assert again.stdout == "1\tduplicate\t\n"
    assert again.stderr == "1 taken (1 known already), 0 refused\n"


def test_a_line_that_is_refused_is_named_by_file_and_number(served: ServedRoom) -> None:
    lines = b'{"stream": "news", "xml": "<a/>"}\n\n{"stream": "news", "xml": "<a>"}\n'
    result = served.xscl("publish", "news", "-", given=lines)
    assert result.exit_code == 1
    assert "<stdin>:3: refused: not well-formed XML" in result.stderr
    assert "1 taken, 1 refused" in result.stderr


def test_matches_so_far_are_printed_as_lines(served: ServedRoom) -> None:
    served.run(served.room.commit(match(1), match(2, "other"), match(3)))
    result = served.xscl("tail", "--no-follow")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["m1", "m2", "m3"]
    result = served.xscl("tail", "same", "--no-follow", "--after", "1")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["m3"]


def test_tail_waits_for_matches_and_ends_at_its_limit(served: ServedRoom) -> None:
    served.run(served.room.commit(match(1)))
    results = []
    tail = threading.Thread(
        target=lambda: results.append(served.xscl("tail", "--after", "1", "-n", "1"))
    )
    tail.start()
    served.run(served.room.commit(match(2)))
    tail.join(20)
    (result,) = results
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["m2"]


def test_tail_is_ended_with_ctrl_c_without_a_complaint(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("broker.cli.connection.BrokerConnection.get", interrupted)
    result = served.xscl("tail", "--after", "0")
    assert (result.exit_code, result.stderr) == (0, "")


def test_rows_are_printed_as_csv_too(served: ServedRoom, query_file: Path) -> None:
    served.xscl("register", str(query_file))
    text = served.xscl("list", "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["id"], row["state"]) == ("same", "active")


def test_the_running_broker_says_why_documents_do_not_match(
    served: ServedRoom, query_file: Path
) -> None:
    assert served.xscl("register", str(query_file)).exit_code == 0
    lines = b'{"stream": "S", "xml": "<b/>"}\n{"stream": "S", "xml": "<c/>"}\n'
    assert served.xscl("publish", "S", "-", given=lines).exit_code == 0
    result = served.xscl("explain", "--why-not", query_file.stem, "1", "2")
    assert result.exit_code == 0, result.output
    assert "block" in result.stdout
    result = served.xscl("explain", "--why-not", query_file.stem, "1", "99")
    assert result.exit_code == 1
    assert "99" in result.stderr
    result = served.xscl("explain", "--why-not", "nothing", "1", "2")
    assert result.stderr.startswith("error: no query 'nothing'")


def test_a_registered_query_is_explained_by_its_id(served: ServedRoom, query_file: Path) -> None:
    assert served.xscl("register", str(query_file)).exit_code == 0
    by_file = served.xscl("explain", str(query_file))
    assert served.xscl("explain", query_file.stem).stdout == by_file.stdout
    assert served.xscl("explain", "nothing").stderr.startswith("error: no query 'nothing'")
    missing = served.xscl("explain", "nothing.xscl")
    assert missing.exit_code == 2
    assert missing.stderr.startswith("error: there is no nothing.xscl")


def test_what_verbs_make_is_to_be_had_as_json_and_ids_as_text(
    served: ServedRoom, query_file: Path
) -> None:
    [registered] = json.loads(served.xscl("register", str(query_file), "--format", "json").stdout)
    assert (registered["id"], registered["outcome"]) == ("same", "registered")
    name = served.xscl("subscribe", "same", "pull").stdout.strip()
    assert served.room.registry.subscriptions.get(name).query == "same"
    made = json.loads(served.xscl("subscribe", "same", "pull", "--format", "json").stdout)
    assert served.room.registry.subscriptions.get(made["id"]).query == "same"
    for verb, state in (("pause", "paused"), ("resume", "active")):
        assert json.loads(served.xscl(verb, "same", "--format", "json").stdout)["state"] == state
        assert served.xscl(verb, "same").stdout == ""
    [receipt] = json.loads(
        served.xscl("publish", "news", "-", "--format", "json", given=b"<item/>").stdout
    )
    assert (receipt["docid"], receipt["outcome"]) == (1, "accepted")


def test_the_very_same_text_is_said_to_be_unchanged(served: ServedRoom, query_file: Path) -> None:
    assert served.xscl("register", str(query_file)).stderr.startswith("registered same (")
    assert served.xscl("register", str(query_file)).stderr.startswith("unchanged: same (")
    again = served.xscl("register", str(query_file), "--since", "all")
    assert again.stderr.startswith("unchanged: same (")
    query_file.write_text(SAME.replace("2 days", "3 days"))
    assert served.xscl("register", str(query_file)).stderr.startswith("registered same (")


def test_a_new_text_that_looks_back_says_that_matches_are_sent_again(
    served: ServedRoom, query_file: Path
) -> None:
    warned = "a new text makes new matches"
    assert warned not in served.xscl("register", str(query_file), "--since", "all").stderr
    served.xscl("subscribe", "same", "pull")
    query_file.write_text(SAME.replace("2 days", "3 days"))
    assert warned in served.xscl("register", str(query_file), "--since", "all").stderr
    query_file.write_text(SAME.replace("2 days", "4 days"))
    assert warned not in served.xscl("register", str(query_file)).stderr


def test_documents_that_are_too_much_for_one_request_go_in_several(
    served: ServedRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker of this test takes 1 MB at once, that of the settings 16."""
    monkeypatch.setattr("broker.cli.publish._BYTES_AT_ONCE", 1 << 19)
    text = "x" * 60_000
    lines = [json.dumps({"key": str(n), "xml": f"<a>{text}</a>"}) for n in range(30)]
    lines.insert(20, '{"key": "wrong", "xml": "<a>"}')
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    done = served.xscl("publish", "news", str(tmp_path / "lines.jsonl"))
    assert [line.split("\t")[2] for line in done.stdout.splitlines()] == list(map(str, range(30)))
    assert "30 taken, 1 refused" in done.stderr
    assert "lines.jsonl:21: refused" in done.stderr


def test_what_is_compressed_is_published_as_what_it_holds(
    served: ServedRoom, tmp_path: Path
) -> None:
    lines = b'{"xml": "<a/>"}\n{"xml": "<b/>"}\n'
    (tmp_path / "lines.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "item.xml.gz").write_bytes(gzip.compress(b"<item/>"))
    files = [str(tmp_path / name) for name in ("lines.gz", "item.xml.gz")]
    assert "3 taken" in served.xscl("publish", "news", *files).stderr
    packed = gzip.compress(b"<item>stdin</item>")
    assert "1 taken" in served.xscl("publish", "news", "-", given=packed).stderr
    broken = served.xscl("publish", "news", "-", given=packed[:-9])
    assert broken.exit_code == 1
    assert "it is compressed, and broken" in broken.stderr


def test_matches_are_printed_for_people_where_people_look(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.run(served.room.commit(match(1)))
    shown = served.xscl("tail", "--no-follow", "--format", "text").stdout.splitlines()
    line = json.loads(served.xscl("tail", "--no-follow").stdout)
    assert shown[0] == "same"
    names = " + ".join(f"{each['stream']} {each['key']}" for each in line["documents"])
    assert shown[1] == f"  {line['end']}  {names}"
    assert len(shown) == 2
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True)
    assert served.xscl("tail", "--no-follow").stdout.splitlines() == shown


def test_a_query_that_is_not_there_has_no_matches_to_wait_for(served: ServedRoom) -> None:
    for more in ([], ["--no-follow"]):
        missing = served.xscl("tail", "typo", *more)
        assert missing.exit_code == 1
        assert "no query 'typo'" in missing.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("unsubscribe", "xscl remove SUBSCRIPTION"),
        ("delete", "xscl remove QUERY"),
        ("status", "xscl top --once"),
        ("regster", "did you mean `register`?"),
    ],
)
def test_a_verb_of_other_programs_leads_to_ours(word: str, said: str) -> None:
    result = CliRunner().invoke(main, [word])
    assert result.exit_code == 2
    assert said in result.stderr


def test_help_is_a_verb_too() -> None:
    whole = CliRunner().invoke(main, ["help"])
    assert (whole.exit_code, whole.stdout) == (0, CliRunner().invoke(main, ["--help"]).stdout)
    one = CliRunner().invoke(main, ["help", "deliveries", "retry"])
    assert one.exit_code == 0
    assert "Try deliveries now" in one.stdout
    assert CliRunner().invoke(main, ["help", "nonsense"]).exit_code == 2


def test_https_at_a_port_of_http_is_said(served: ServedRoom) -> None:
    url = served.url.replace("http:", "https:")
    result = CliRunner().invoke(main, ["--broker", url, "list"])
    assert result.exit_code == 3
    assert "does not speak TLS" in result.stderr
    assert served.url in result.stderr


COMMENTED = """-- Stories that two feeds have.
news//item->a  (: the first :)
  FOLLOWED BY {a/title = b/title, 2 days} news//item->b  -- pairs
"""


def test_a_query_is_shown_as_its_author_wrote_it(served: ServedRoom, query_file: Path) -> None:
    query_file.write_text(COMMENTED)
    served.xscl("register", str(query_file))
    assert COMMENTED.strip() in served.xscl("show", "same").stdout
    shown = json.loads(served.xscl("show", "same", "--format", "json").stdout)
    assert shown["description"] == "Stories that two feeds have."
    point = shown["point"]
    served.run(served.room.backend.change(lambda newest: None))
    query_file.write_text(COMMENTED.replace("Stories", "News"))
    assert served.xscl("register", str(query_file)).stderr.startswith("unchanged: same")
    shown = json.loads(served.xscl("show", "same", "--format", "json").stdout)
    assert (shown["description"], shown["point"]) == ("News that two feeds have.", point)
    query_file.write_text(SAME.replace("2 days", "3 days"))
    served.xscl("register", str(query_file))
    assert "News" not in served.xscl("show", "same").stdout


def test_each_query_of_a_file_keeps_its_own_comments(served: ServedRoom, tmp_path: Path) -> None:
    text = "-- One.\nFROM news//item[t = ';'] PUBLISH one;\n-- Two.\nFROM news//item PUBLISH two"
    (tmp_path / "both.xscl").write_text(text)
    assert served.xscl("register", str(tmp_path / "both.xscl")).exit_code == 0
    for name in ("One", "Two"):
        shown = json.loads(served.xscl("show", name.lower(), "--format", "json").stdout)
        assert shown["description"] == f"{name}."


def test_who_gets_nothing_for_now_is_listed_with_the_reason(
    served: ServedRoom, query_file: Path
) -> None:
    served.xscl("register", str(query_file))
    destination = Destination.parse("https://h.example/")
    for quiet in ("00:00-12:00", "12:00-24:00"):  # at any moment one of them is quiet
        served.room.registry.subscribe("same", destination, point=0, options=Options(quiet=quiet))
    for verb in (["subscriptions"], ["show", "same"]):
        assert served.xscl(*verb).stdout.count("quiet or snoozed until 20") == 1


def test_what_is_not_shown_of_many_subscriptions_is_counted(
    served: ServedRoom, query_file: Path
) -> None:
    query_file.write_text("news//item[author = $who]")
    served.xscl("register", str(query_file))
    for number in range(120):
        served.room.registry.subscribe(
            "same", PULL, point=0, parameters={"who": f"author {number}"}
        )
    shown = served.xscl("show", "same")
    assert shown.stdout.count("sub_") == 100
    assert "and 20 more: `xscl subscriptions same`" in shown.stderr
    listed = served.xscl("subscriptions", "same", "--format", "json")
    assert len(json.loads(listed.stdout)) == 120
    assert "author 119" in served.xscl("subscriptions").stdout
    assert "no subscriptions" in served.xscl("subscriptions", "--to", "nobody@").stderr
    assert "no subscriptions" in served.xscl("subscriptions", "--state", "paused").stderr
    unknown = served.xscl("subscriptions", "list")
    assert unknown.exit_code == 1
    assert "no query" in unknown.stderr
