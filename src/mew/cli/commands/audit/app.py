"""`mew audit`: what the record of a space says, and whether it is true."""

import typer

from . import proof, queries

__all__ = ["audit"]

audit = typer.Typer(
    name="audit",
    help="What happened in a space, from its journal, and the proof of it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
audit.command("list")(queries.list_facts)
audit.command("chain")(queries.chain)
audit.command("grants")(queries.grants)
audit.command("violations")(queries.violations)
audit.command("stats")(queries.stats)
audit.command("verify")(proof.verify)
audit.command("export")(proof.export)
audit.command("key")(proof.key)
