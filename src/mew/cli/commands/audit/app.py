"""The commands of `mew audit`."""

import typer

from . import proof, queries

__all__ = ["audit"]

audit = typer.Typer(
    name="audit", help="Query the journal of a space, and prove that it is complete.", no_args_is_help=True
)
audit.command("list")(queries.list_facts)
audit.command()(queries.chain)
audit.command()(queries.grants)
audit.command()(queries.violations)
audit.command()(queries.stats)
audit.command()(proof.verify)
audit.command()(proof.export)
audit.command()(proof.key)
