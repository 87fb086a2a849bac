"""`mew audit verify`, `export` and `key`: prove to others, and to yourself, what happened."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mew.audit.proof.checkpoints import read_checkpoints
from mew.audit.proof.export import ExportRange, as_csv, as_json_lines, select
from mew.audit.proof.export_check import verify_export
from mew.audit.proof.keys import BadKey, fingerprint, load_public, make_key, public_file
from mew.audit.proof.verification_result import VerificationResult
from mew.audit.proof.verify import verify_journal
from mew.cli.errors import told
from mew.cli.files import whole_file
from mew.cli.locate.journal import Config, Failed, Journal, SpaceName, find_journal
from mew.cli.render.progress import progress
from mew.cli.render.times import read_time
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import open_index
from mew.journal.reader import JournalReader

from .verification import show_verdict, verdict_json

__all__ = ["export", "key", "verify"]

_STDIO = Path("-")
_TOLD_EVERY = 4096


class Format(StrEnum):
    """JSON Lines with the proof, or a table without."""

    JSONL = "jsonl"
    CSV = "csv"


@told()
def verify(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An export to check, - for stdin; without one a journal is checked.", show_default=False
        ),
    ] = None,
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            "--key",
            metavar="PATH",
            help="The public key that checkpoints must be signed with; may be given again.",
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Say it as a JSON document.")] = False,
) -> None:
    """Go through every entry of a journal, or of an export: is each what was written, and is none missing?

    Ends with 0 if so, with 1 if not, and with 2 if that could not be found out.

    Examples:
      mew audit verify
      mew audit verify january.jsonl --key journal-key.pem.pub
    """
    if file is not None and (journal is not None or space is not None):
        raise Failed("name either an export or a journal, not both")
    keys = _keys(key or [])
    if file is None:
        folder, name = find_journal(config, journal, space)
        with progress("going through the journal") as walked:
            verdict = verify_journal(folder, name, keys, walked)
    else:
        verdict = _verified(file, keys)
    if json:
        typer.echo(verdict_json(verdict), nl=False)
    else:
        show_verdict(verdict)
    if not verdict.is_sound:
        raise typer.Exit(1)


@told()
def export(
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, help="The first entry, by its number.")
    ] = None,
    last: Annotated[int | None, typer.Option("--to", min=1, help="The last entry, by its number.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Begin with the first entry at this time or later: 2026-01-31T12:30, or 2h for so long ago.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End before the first entry at this time or later.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, - for stdout.")] = _STDIO,
    form: Annotated[
        Format, typer.Option("--format", help="jsonl has the proof; csv is a table, and proves nothing.")
    ] = Format.JSONL,
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
) -> None:
    """Write a range of entries for others, who can check it with 'mew audit verify FILE'.

    Example: mew audit export --since 2026-01-01 -o january.jsonl
    """
    now = datetime.now(UTC)
    wanted = ExportRange(
        first=first,
        last=last,
        since=read_time("--since", since, now),
        until=read_time("--until", until, now),
    )
    folder, name = find_journal(config, journal, space)
    with (
        open_index(folder) as locator,
        JournalReader(locator, name) as reader,
        _output(output, force=force) as file,
    ):
        selection = select(reader, wanted)
        checkpoints = read_checkpoints(space_folder(folder, name))
        lines = (
            as_csv(selection)
            if form is Format.CSV
            else as_json_lines(selection, checkpoints, datetime.now(UTC), version("mew-protocol"))
        )
        total = (last or reader.last) - selection.after.seq
        _write(lines, file, total)
    if output != _STDIO:
        typer.echo(f"wrote {output}", err=True)


@told()
def key(
    file: Annotated[Path, typer.Argument(help="Where to write the private key; the public one is FILE.pub.")],
) -> None:
    """Make a key with which a gateway signs checkpoints; 'journal.sign_key' in the space.yaml names it.

    Example: mew audit key journal-key.pem
    """
    try:
        public = make_key(file)
    except BadKey as error:
        raise Failed(str(error)) from error
    typer.echo(f"private key  {file}  (for journal.sign_key; keep it secret)")
    typer.echo(f"public key   {public_file(file)}  (for those who verify)")
    typer.echo(f"fingerprint  {fingerprint(public)}")


def _keys(files: list[Path]) -> list[Ed25519PublicKey]:
    try:
        return [load_public(file) for file in files]
    except BadKey as error:
        raise Failed(str(error)) from error


def _verified(file: Path, keys: list[Ed25519PublicKey]) -> VerificationResult:
    with progress("going through the export") as walked:
        if file == _STDIO:
            return verify_export(typer.get_binary_stream("stdin"), keys, walked)
        if file.is_dir():
            raise Failed(f"{file}: is a folder; a journal is named with --journal FOLDER and --space NAME")
        try:
            with file.open("rb") as opened:
                return verify_export(opened, keys, walked)
        except OSError as error:
            raise Failed(f"{file}: {error.strerror}") from error


@contextmanager
def _output(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    if path == _STDIO:
        yield typer.get_binary_stream("stdout")
    else:
        with whole_file(path, force=force) as file:
            yield file


def _write(lines: Iterator[bytes], file: BinaryIO, total: int) -> None:
    with progress("exporting", hidden=file.isatty()) as walked:  # or both would be on one screen
        for done, line in enumerate(lines):
            file.write(line)
            if done % _TOLD_EVERY == 0:
                walked(min(done, total), total)  # an entry may have several lines
