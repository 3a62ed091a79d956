"""The description of the HTTP API says what the server does, and the server what it says."""

from __future__ import annotations

import asyncio
import copy
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.api_house import House
from support.examples import examples

from broker.api.access import RULES, AccessRule
from broker.api.description import description
from broker.web import pages

if TYPE_CHECKING:
    import schemathesis

METHODS = ("get", "put", "post", "delete")
SECURITY = {
    AccessRule.PUBLIC: [],
    AccessRule.PUBLISH: [{"token": ["publish"]}],
    AccessRule.METRICS: [{"token": ["metrics"]}],
    AccessRule.OWN: [{"token": ["subscribe"]}],
    AccessRule.SELF: [{"token": ["subscribe"]}],
    AccessRule.CHOSEN: [{"token": ["subscribe"]}],
    AccessRule.READ: [{"token": ["subscribe"]}, {"subscription_token": []}],
    AccessRule.ADMIN: [{"token": ["admin"]}],
}
PROBLEMS = {"400", "401", "403", "404", "409", "413", "422", "429", "503"}


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in described["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


OPERATIONS = {f"{method} {path}": each for method, path, each in operations(description())}


def test_the_description_is_openapi() -> None:
    from openapi_spec_validator import validate

    validate(description())


def test_the_description_has_the_version_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert description()["info"]["version"] == project["project"]["version"]


async def test_every_resource_is_described_and_no_other(house: House) -> None:
    served = {f"{method} {path}" for method, path in house.routes() if method != "HEAD"}
    shown = {f"{route.method} {route.path}" for route in pages.ROUTES}
    served -= {re.sub(r"(\w):[^/]*\}", r"\1}", name) for name in shown}
    assert set(OPERATIONS) == served


async def test_the_description_is_served_to_everyone(house: House) -> None:
    async with house.client.get("/v1/openapi.json") as answer:
        assert await answer.json() == description()


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_says_who_may_and_what_may_be_answered(name: str) -> None:
    operation = OPERATIONS[name]
    rule = RULES.get(name, AccessRule.ADMIN)
    assert operation["security"] == SECURITY[rule]
    statuses = set(operation["responses"])
    assert statuses >= {"429"} | (set() if rule is AccessRule.PUBLIC else {"401", "403"})
    assert ("413" in statuses) == ("requestBody" in operation)
    if "{" in name and rule is not AccessRule.PUBLIC:
        assert statuses & {"404", "422", "200"}
    assert operation["summary"][0].isupper()


def test_every_error_is_problem_details() -> None:
    for method, path, operation in operations(description()):
        for status, response in operation["responses"].items():
            if status in PROBLEMS and not path.startswith("/websub"):
                assert response["$ref"].startswith("#/components/responses/"), (method, path)
    for response in description()["components"]["responses"].values():
        assert list(response["content"]) == ["application/problem+json"]


def test_names_of_operations_are_names_of_one_each() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in names)


def strict() -> dict[str, Any]:
    """The description, where an answer has no member that it does not name, and nobody waits."""
    described = copy.deepcopy(description())
    for schema in described["components"]["schemas"].values():
        _close(schema)
    for _, _, operation in operations(described):
        parameters = operation.get("parameters", [])
        # tests/broker/test_access.py tries every rule; here an admin asks.
        del operation["security"]
        operation["parameters"] = [each for each in parameters if not each["$ref"].endswith("wait")]
    del described["components"]["schemas"]["Fetch"]["properties"]["wait_s"]
    return described


def _close(schema: dict[str, Any]) -> None:
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    for inner in (*schema.get("properties", {}).values(), schema.get("items")):
        if inner:
            _close(inner)


@cache
def schema() -> Any:
    """What makes requests of the description.

    It takes a second to import, and each process that runs tests imports all of them.
    """
    import schemathesis

    return schemathesis.openapi.from_dict(strict())


@cache
def all_checks() -> list[Any]:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    return [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
        checks.unsupported_method,
    ]


ENDLESS = {"GET /v1/subscriptions/{id}/stream"}
"""Their answers have no end; tests/broker/test_pull.py reads them."""

SLOW = {"POST /v1/queries/{id}/rehearsal", "POST /v1/language/trial"}
"""Each starts a process."""


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - ENDLESS))
async def test_the_server_does_what_the_description_says(house: House, name: str) -> None:
    method, _, path = name.partition(" ")
    url = house.url
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    known = {
        "id": house.mine if "/subscriptions/" in path else "other",
        "docid": 1,
        "stream": "news",
        "name": "reader",
    }

    from schemathesis import GenerationMode

    operation = schema()[path][method]
    cases = [operation.as_strategy(mode) for mode in GenerationMode]

    @given(case=st.one_of(cases))
    @settings(
        max_examples=examples(1 if name in SLOW else 3),
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def run(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=url, headers=headers, checks=all_checks())
        # The same for what there is: a name that was made up is seldom one.
        if set(case.path_parameters) & set(known):
            case.path_parameters.update({k: known[k] for k in case.path_parameters if k in known})
            case.call_and_validate(base_url=url, headers=headers, checks=all_checks())

    await asyncio.to_thread(run)
