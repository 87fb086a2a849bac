"""PURE. The OpenAPI 3.1 document, built from the routes that the HTTP door registers."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from mew.protocol.envelope import PROTOCOL

from .schemas import NoQuery, ProblemDetails

__all__ = ["ApiRoute", "document"]

_SCHEMAS: Final = "#/components/schemas/"
_REF: Final = _SCHEMAS + "{name}"
_JSON: Final = "application/json"

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 256}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_FIELDS: Final[dict[str, Any]] = {
    "protocol": {"const": PROTOCOL},
    "id": _TEXT,
    "ts": {"type": "string", "format": "date-time"},
    "from": _TEXT,
    "to": _TEXTS,
    "kind": _TEXT,
    "correlation_id": _TEXTS,
    "context": {"type": "string", "maxLength": 4096},
    "payload": {"type": "object"},
}
_ENVELOPE: Final[dict[str, Any]] = {
    "title": "Envelope",
    "description": "A complete envelope (MEW v0.4 §3), as it was shown.",
    "type": "object",
    "properties": _FIELDS,
    "required": ["protocol", "id", "from", "kind"],
}
_PARTIAL: Final[dict[str, Any]] = {
    "title": "PartialEnvelope",
    "description": "An envelope; `protocol`, `id`, `ts` and `from` are filled in where they are missing.",
    "type": "object",
    "properties": _FIELDS,
    "required": ["kind"],
}
_IN_PATH: Final = {
    "participant": "The participant whose token this is.",
    "space": "The id of a space.",
}


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One thing that may be asked over HTTP. `answer`: a shape, or a media type; `problems`: its statuses.

    `takes`: the shape of its body, where that is no envelope.
    """

    method: str
    path: str
    name: str
    summary: str
    answer: type[Struct] | str
    problems: tuple[int, ...] = ()
    query: type[Struct] = NoQuery
    is_open: bool = False
    takes_envelope: bool = False
    takes: type[Struct] | None = None


def document(routes: Iterable[ApiRoute], version: str) -> dict[str, Any]:
    """The whole document. Every route is in it, and nothing else."""
    listed = tuple(routes)
    shapes = [route.answer for route in listed if not isinstance(route.answer, str)]
    shapes += [route.takes for route in listed if route.takes is not None]
    _, schemas = msgspec.json.schema_components((*dict.fromkeys(shapes), ProblemDetails), ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MEW gateway",
            "summary": "Spaces of the MEW Protocol v0.4 over HTTP.",
            "description": "The same rules and codes as over WebSocket (`GET /ws?space=NAME`).",
            "version": version,
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {"Envelope": _ENVELOPE, "PartialEnvelope": _PARTIAL, **schemas},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route.path), *_query_parameters(route.query)],
        "security": [] if route.is_open else [{"token": []}],
        "responses": {"200": _answer(route.answer)}
        | {str(status): _problem(status) for status in route.problems},
    }
    if route.takes_envelope:
        operation["requestBody"] = {"required": True, "content": {_JSON: _schema("PartialEnvelope")}}
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: _schema(route.takes.__name__)}}
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _IN_PATH[name],
            "schema": {"type": "string"},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(query: type[Struct]) -> list[dict[str, Any]]:
    _, schemas = msgspec.json.schema_components((query,), ref_template=_REF)
    fields: dict[str, dict[str, Any]] = schemas[query.__name__]["properties"]
    return [_query_parameter(name, _inlined(field, schemas)) for name, field in fields.items()]


def _query_parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    described = {"description": schema["description"]} if "description" in schema else {}
    rest = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", "required": False, **described, "schema": rest}


def _inlined(field: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The field with what it refers to written out: parameters have no component of their own."""
    if "$ref" not in field:
        return field
    referred = schemas[field["$ref"].removeprefix(_SCHEMAS)]
    return {**referred, **{key: value for key, value in field.items() if key != "$ref"}}


def _answer(answer: type[Struct] | str) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"description": "As asked.", "content": {answer: {}}}
    return {"description": "As asked.", "content": {_JSON: _schema(answer.__name__)}}


def _problem(status: int) -> dict[str, Any]:
    described = {503: "Not available now: a space has failed, or the gateway is stopping."}
    return {
        "description": described.get(status, "Refused; `error` says why."),
        "content": {"application/problem+json": _schema("ProblemDetails")},
    }


def _schema(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": _SCHEMAS + name}}
