"""The OpenAPI document and the gateway: neither has anything that the other lacks."""

import re
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.gateway.served import Answer, Served

from mew.gateway.http.problems import STATUS


async def document_of(served: Served) -> dict[str, Any]:
    answer = await served.nobody.get("/openapi.json")
    assert (answer.status, answer.type) == (200, "application/json")
    document: dict[str, Any] = answer.json
    return document


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]


async def asked(served: Served, method: str, path: str, body: Any) -> Answer:
    """What ann is answered, with this as the body where there is to be one."""
    ann = served.ann
    if path == "/sessions":
        body = {"code": (await ann.ask("POST", "/spaces/demo/links")).json["code"]}
    if path == "/sessions/end":
        code = (await ann.ask("POST", "/spaces/demo/links")).json["code"]
        ann = served.caller("ann", (await ann.ask("POST", "/sessions", json={"code": code})).json["token"])
    real = path.replace("{participant}", "ann").replace("{space}", "demo")
    return await ann.ask(method, real, json=body if method == "POST" else None)


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for item in value.values() for ref in references(item)]
    return [ref for item in value for ref in references(item)] if isinstance(value, list) else []


def validator(document: dict[str, Any], schema: str) -> Draft202012Validator:
    resource = Resource.from_contents({"$schema": "https://json-schema.org/draft/2020-12/schema", **document})
    registry: Registry[Any] = Registry().with_resource("urn:api", resource)
    return Draft202012Validator({"$ref": f"urn:api#/components/schemas/{schema}"}, registry=registry)


async def test_every_operation_is_served_and_says_which_methods_there_are(served: Served) -> None:
    document = await document_of(served)
    for method, path, _ in operations(document):
        real = path.replace("{participant}", "ann").replace("{space}", "demo")
        answer = await served.ann.ask("OPTIONS", real)
        assert answer.status == 204
        documented = {m.upper() for m in document["paths"][path]}
        assert set(answer.headers["Allow"].split(", ")) == documented | {"OPTIONS"}
        answer = await asked(served, method, path, {"kind": "chat"})
        assert answer.status == (426 if path == "/ws" else 200), (method, path, answer)


async def test_every_reference_leads_somewhere_and_every_operation_has_its_own_name(served: Served) -> None:
    document = await document_of(served)
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    for name, schema in document["components"]["schemas"].items():
        assert name
        Draft202012Validator.check_schema(schema)


async def test_parameters_in_a_path_are_declared_and_required(served: Served) -> None:
    for _, path, operation in operations(await document_of(served)):
        declared = {p["name"] for p in operation["parameters"] if p["in"] == "path" and p["required"]}
        assert declared == set(re.findall(r"{(\w+)}", path))


async def test_what_is_open_to_all_is_marked_so_and_the_rest_needs_a_token(served: Served) -> None:
    for method, path, operation in operations(await document_of(served)):
        real = path.replace("{participant}", "ann").replace("{space}", "demo")
        answer = await served.nobody.ask(method, real)
        assert (answer.status == 401) == bool(operation["security"]), path
        if operation["security"]:
            assert "401" in operation["responses"]


async def test_answers_and_problems_are_as_documented(served: Served) -> None:
    document = await document_of(served)
    await served.bot.say("mcp/proposal", payload={"method": "tools/call", "params": {"name": "x"}})
    await served.ann.say("stream/request", payload={"direction": "upload"})
    await served.ann.say("participant/pause", to=["eve"], payload={"timeout_seconds": 60})
    for method, path, operation in operations(document):
        body = {"kind": "stream/request", "payload": {"direction": "upload"}}
        answer = await asked(served, method, path, body)
        content = operation["responses"]["200"]["content"]
        if "schema" in content.get("application/json", {}):
            name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
            validator(document, name).validate(answer.json)
    refused = await served.bot.send({"kind": "mcp/request", "payload": {"method": "tools/list"}})
    validator(document, "ProblemDetails").validate(refused.json)


async def test_the_reference_names_every_operation_and_every_parameter(served: Served) -> None:
    reference = (Path(__file__).parents[3] / "docs/reference/http.md").read_text(encoding="utf-8")
    for method, path, operation in operations(await document_of(served)):
        assert f"`{method} {path}`" in reference
        for parameter in operation["parameters"]:
            assert f"`{parameter['name']}`" in reference


async def test_the_reference_names_every_code_and_every_metric(served: Served) -> None:
    reference = (Path(__file__).parents[3] / "docs/reference/http.md").read_text(encoding="utf-8")
    for refusal, status in STATUS.items():
        assert re.search(rf"^\| {status} \| .*`{refusal}`", reference, re.MULTILINE), refusal
    told = (await served.nobody.get("/metrics")).body.decode()
    for name in re.findall(r"^(mew_\w+)", told, re.MULTILINE):
        assert f"`{name}`" in reference
