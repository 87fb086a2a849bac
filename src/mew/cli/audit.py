"""`mew audit`: what the record of a space says, and whether it is true."""

import typer

from . import audit_proof, audit_queries

__all__ = ["audit"]

audit = typer.Typer(
    name="audit",
    help="What happened in a space, from its journal, and the proof of it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
audit.command("list")(audit_queries.list_facts)
audit.command("chain")(audit_queries.chain)
audit.command("grants")(audit_queries.grants)
audit.command("violations")(audit_queries.violations)
audit.command("stats")(audit_queries.stats)
audit.command("verify")(audit_proof.verify)
audit.command("export")(audit_proof.export)
audit.command("key")(audit_proof.key)
