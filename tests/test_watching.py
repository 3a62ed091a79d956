"""The dashboard and the alert rules of `deploy/` ask for what `/metrics` has."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from broker.cli import main
from broker.operations.helptexts import HELP

DEPLOY = Path(__file__).parent.parent / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
VARIABLES = [each["query"] for each in DASHBOARD["templating"]["list"]]


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\bxscl_\w+", expression))


def is_documented(metric: str) -> bool:
    name = metric.removeprefix("xscl_")
    stem = re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name)
    return name in HELP or (stem != name and stem in HELP)


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in ALERTS), *QUERIES])
def test_every_metric_that_is_asked_for_is_documented(expression: str) -> None:
    found = metrics_in(expression)
    assert found
    assert [metric for metric in found if not is_documented(metric)] == []
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)


def test_counters_are_asked_for_how_fast_they_grow() -> None:
    for expression in (*(rule["expr"] for rule in ALERTS), *QUERIES):
        for metric in metrics_in(expression):
            if metric.endswith(("_total", "_bucket")):
                assert re.search(rf"(rate|increase)\({metric}\b", expression), expression


def test_an_alert_says_what_is_wrong_and_how_grave_it_is() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names) > 8
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"].rstrip(".")
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}


def said(rule: dict[str, Any]) -> str:
    return " ".join(rule["annotations"].values())


def test_the_verbs_that_alerts_name_are_there() -> None:
    named = re.findall(r"`xscl ([^`]+)`", " ".join(map(said, ALERTS)))
    assert len(named) > 5
    for line in named:
        command: click.Command | None = main
        for word in shlex.split(line):
            if word.startswith("-") or not isinstance(command, click.Group):
                break
            command = command.get_command(click.Context(command), word)
            assert command is not None, line


def test_a_dashboard_asks_one_data_source_and_shows_each_thing_once() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels})
    places = [
        (x, y)
        for panel in panels
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(each["datasource"]["uid"] == "${datasource}" for each in panel["targets"])
    assert all(is_documented(metric) for text in VARIABLES for metric in metrics_in(text))
