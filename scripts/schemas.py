"""Write the JSON Schemas of the wire to docs/reference/schemas: the envelope, and the payload of every kind."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from mew.protocol.envelope import PROTOCOL, Envelope
from mew.protocol.kinds import PAYLOADS

__all__ = ["FOLDER", "documents", "file_name"]

FOLDER: Final = Path(__file__).parents[1] / "docs" / "reference" / "schemas"

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_RFC_3339: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
_ENVELOPE: Final = (
    "What every kind shares (§3). Other fields are kept; what is absent is left out, never null."
)


def documents() -> dict[str, str]:
    """The text of every file, by its name."""
    schemas = {"envelope.json": _envelope()}
    schemas |= {file_name(kind): _schema(shape, title=kind) for kind, shape in PAYLOADS.items()}
    schemas["index.json"] = {
        "envelope": "envelope.json",
        "payloads": {kind: file_name(kind) for kind in sorted(PAYLOADS)},
    }
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def file_name(kind: str) -> str:
    return kind.replace("/", "-") + ".json"


def main() -> None:
    written = documents()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for stale in FOLDER.glob("*.json"):
        if stale.name not in written:
            stale.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(written)} schemas written to {FOLDER.relative_to(FOLDER.parents[2])}\n")


def _envelope() -> dict[str, Any]:
    """The codec compares `protocol` itself and leaves `payload` raw, so their types do not say all."""
    fields = [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(Envelope)
        if field.name != "payload"
    ]
    written = msgspec.defstruct(
        "Envelope", fields, rename={"sender": "from"}, kw_only=True, namespace={"__doc__": _ENVELOPE}
    )
    schema = _schema(written, title=f"{PROTOCOL} envelope")
    schema["properties"]["protocol"] = {"const": PROTOCOL}
    schema["properties"]["ts"]["pattern"] = _RFC_3339
    schema["properties"]["payload"] = {"type": "object"}
    return schema


def _schema(shape: type, *, title: str) -> dict[str, Any]:
    (top,), parts = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    own = parts.pop(top["$ref"].rpartition("/")[2])
    schema = {"$schema": _DIALECT, **own, "title": title}
    if parts:
        schema["$defs"] = parts
    return schema


if __name__ == "__main__":
    main()
