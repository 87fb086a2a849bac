"""Capabilities: what an envelope must look like for its sender to be let through (§4, design §4).

    from mew.protocol.capability import Capability, CapabilitySet

    held = CapabilitySet([Capability.parse("mcp/request:tools/call:read_*"), Capability.parse("chat")])
    held.fits("chat", ["ann"], payload=lambda: {"text": "hi"})    # True, without asking for the payload
    held.covers(Capability.parse("mcp/request:tools/call:read_file"))    # True: may be granted on

The map, from the outside in:

- `capability_set`  CapabilitySet: what one participant holds, cached by kind
- `capability`      Capability: parse, fits, covers, disjoint, without
- `clause`          patterns for kind, addressees and payload; a scope is a clause less its exceptions
- `syntax`          parse the written form and the shorthand `mcp/request:tools/call:read_*`; the limits
- `pattern`         the patterns and what fits them;  `glob`, `json_path`  wildcards and JSONPath
- `containment`     proofs: one pattern covers another, or two have nothing in common
- `values`          decoded JSON, and objects that repeat a key

What the patterns mean where design §4 leaves room:

- Only literal text fits a `..` path segment (between `/`, `\\` or the ends). No regular expression, no
  negation and no `*` alone fits a string that has one; a glob does only where the dots are written in it.
- `*` or `**` alone fits any JSON value that is there, of any type; other string patterns fit strings only.
- `/…/` is searched for, as everywhere; `^…$` binds it. So `/public/` is an expression, not a path.
- A JSONPath starts at the object it stands in: at the top that is the payload. A value so large that the path
  might visit more than 10,000 nodes is in doubt: it does not fit what allows and fits what forbids. For one
  envelope all paths together make 10,000 visits; a capability whose paths would go beyond that does not fit.
- An array in a pattern is any of; an array in a value fits `*` only. Look into it with `$.items[*]`.
"""

from .capability import Capability
from .capability_set import CapabilitySet
from .containment import ProofBudget
from .json_path import PathWork
from .syntax import count_expensive, name_field, short_form, short_text
from .values import JSON, AmbiguousPayload, Repeated

__all__ = [
    "JSON",
    "AmbiguousPayload",
    "Capability",
    "CapabilitySet",
    "PathWork",
    "ProofBudget",
    "Repeated",
    "count_expensive",
    "name_field",
    "short_form",
    "short_text",
]
