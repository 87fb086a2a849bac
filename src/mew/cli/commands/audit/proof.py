"""`mew audit verify`, `export` and `key`: prove what happened, to others and to yourself."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mew.audit.proof.checkpoints import read_checkpoints
from mew.audit.proof.export import ExportRange, as_csv, as_json_lines, select
from mew.audit.proof.export_check import verify_export
from mew.audit.proof.keys import BadKey, fingerprint, load_public, make_key, public_file
from mew.audit.proof.verification_result import VerificationResult
from mew.audit.proof.verify import verify_journal
from mew.cli.errors import CommandError, ExitCode
from mew.cli.files import new_file
from mew.cli.locate.journal import ConfigOption, JournalOption, find_journal
from mew.cli.locate.login import SpaceOption
from mew.cli.render.progress import progress
from mew.cli.render.times import SinceOption, UntilOption, read_time
from mew.cli.session import JsonOption
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import open_index
from mew.journal.reader import JournalReader

from .queries import SPACE_FILE
from .verification import result_json, show_result

__all__ = ["export", "key", "verify"]

_STDIO: Final = Path("-")
_PROGRESS_LINES: Final = 4096


class ExportFormat(StrEnum):
    """JSON Lines with the proof, or a table without."""

    JSONL = "jsonl"
    CSV = "csv"


def verify(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An export to verify, - for stdin. Without it, the journal is verified.", show_default=False
        ),
    ] = None,
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            "--key", metavar="PATH", help="Public key that must have signed the checkpoints. May be repeated."
        ),
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Verify the hash chain of a journal or an export: no entry was changed, and none is missing.

    Exit code 0: it is intact. 1: it is not. 2: it could not be read.

    Examples:
      mew audit verify
      mew audit verify january.jsonl --key journal-key.pem.pub
    """
    if file is not None and (journal is not None or space is not None):
        raise CommandError("name either an export or a journal, not both")
    keys = _keys(key or [])
    if file is None:
        folder, name = find_journal(config, journal, space)
        with progress("verifying the journal") as advance:
            result = verify_journal(folder, name, keys, advance)
    else:
        result = _verify_export(file, keys)
    if json:
        typer.echo(result_json(result), nl=False)
    else:
        show_result(result)
    if not result.is_sound:
        raise typer.Exit(ExitCode.NO)


def export(
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, metavar="N", help="Number of the first entry.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", min=1, metavar="N", help="Number of the last entry.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, - for stdout.")
    ] = _STDIO,
    form: Annotated[
        ExportFormat,
        typer.Option("--format", help="jsonl includes the proof; csv is a table that proves nothing."),
    ] = ExportFormat.JSONL,
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Write a range of entries to a file that others can verify with 'mew audit verify FILE'.

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
            if form is ExportFormat.CSV
            else as_json_lines(selection, checkpoints, datetime.now(UTC), version("mew-protocol"))
        )
        _write(lines, file, total=(last or reader.last) - selection.after.seq)
    if output != _STDIO:
        typer.echo(f"wrote {output}", err=True)


def key(
    file: Annotated[
        Path, typer.Argument(help="Where to write the private key; the public key goes to FILE.pub.")
    ],
) -> None:
    """Make a key pair with which the gateway signs checkpoints ('journal.sign_key' in the space.yaml).

    Example: mew audit key journal-key.pem
    """
    try:
        public = make_key(file)
    except BadKey as error:
        raise CommandError(str(error)) from error
    typer.echo(f"private key  {file}  (for journal.sign_key; keep it secret)")
    typer.echo(f"public key   {public_file(file)}  (for those who verify)")
    typer.echo(f"fingerprint  {fingerprint(public)}")


def _keys(files: list[Path]) -> list[Ed25519PublicKey]:
    try:
        return [load_public(file) for file in files]
    except BadKey as error:
        raise CommandError(str(error)) from error


def _verify_export(file: Path, keys: list[Ed25519PublicKey]) -> VerificationResult:
    with progress("verifying the export") as advance:
        if file == _STDIO:
            return verify_export(typer.get_binary_stream("stdin"), keys, advance)
        if file.is_dir():
            raise CommandError(f"{file} is a folder; name a journal with --journal FOLDER and --space NAME")
        try:
            with file.open("rb") as opened:
                return verify_export(opened, keys, advance)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error


@contextmanager
def _output(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    if path == _STDIO:
        yield typer.get_binary_stream("stdout")
    else:
        with new_file(path, force=force) as file:
            yield file


def _write(lines: Iterator[bytes], file: BinaryIO, *, total: int) -> None:
    with progress("exporting", hidden=file.isatty()) as advance:  # not on the screen that shows the export
        for done, line in enumerate(lines):
            file.write(line)
            if done % _PROGRESS_LINES == 0:
                advance(min(done, total), total)  # an entry may have several lines
