"""The files that programs write to."""

from pathlib import Path

from mew.supervise.logs import last_lines, open_log, put_aside


def test_a_log_is_appended_to_and_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "it.log"
    for word in (b"one\n", b"two\n"):
        with open_log(path) as file:
            file.write(word)
    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_one_that_has_grown_too_long_is_put_aside_and_who_writes_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "it.log"
    with open_log(path) as file:
        file.write(b"x" * 100)
        file.flush()
        assert put_aside(path, 99)
        assert not put_aside(path, 99)
        file.write(b"after\n")
    assert (tmp_path / "it.log.1").read_text() == "x" * 100
    assert path.read_text() == "after\n"


def test_the_last_lines_are_those_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "it.log"
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(100_000)) + b"\xff")
    assert last_lines(path, 2) == ["line 99999", "�"]
    assert last_lines(tmp_path / "gone.log", 2) == []
