"""Start a program that cannot see some folders or files: run by its path, with nothing but the standard library.

    python -I -S confinement.py --hide PATH … -- COMMAND …
    python -I -S confinement.py --method          (print what this system offers)

Linux only. Two methods, the first that works is used:

- `namespace`: a mount namespace of its own in which an empty file system covers each folder, and `/dev/null` each file,
  and a Landlock domain that closes the ways around it: `/proc/PID`, ptrace, unmounting, signals to other processes.
- `landlock`: where mount namespaces are not allowed, Landlock alone. Landlock only has permissions, so everything else
  is permitted, entry by entry. What is created later *directly* in a folder above a hidden one (the home folder, the
  folder of the space.yaml) is out of reach for the program.

Both set `no_new_privs`: the program cannot gain rights through setuid programs such as sudo.
"""

import ctypes
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

__all__ = ["ConfinementMethod", "confined", "find_method"]


class ConfinementMethod(StrEnum):
    """How a program is kept from seeing paths on this system."""

    NAMESPACE = "namespace"
    LANDLOCK = "landlock"
    NONE = "none"


_CANNOT_START = 126
_NOT_FOUND = 127
_CHECK_S = 10.0

_ABI_MIN = 2  # before it, no file could be moved between folders
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_RULE_PATH_BENEATH = 1
_SCOPE_SIGNAL = 1 << 1
_SET_NO_NEW_PRIVS, _DROP_CAPABILITY = 38, 24
# With one of these, root reads other processes or disks past any file system: dac_read_search, sys_module, sys_rawio,
# sys_ptrace, sys_admin, mknod, perfmon, bpf, checkpoint_restore.
_WAYS_AROUND = (2, 16, 17, 19, 21, 27, 38, 39, 40)

_WRITE_FILE, _READ_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 2, 1 << 13, 1 << 14
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_ON_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
_READ_ONLY, _NO_SUID, _NO_DEVICES, _BIND = 1, 2, 4, 1 << 12


def find_method() -> ConfinementMethod:
    """Return what this system offers. Starts a process."""
    if sys.platform != "linux":
        return ConfinementMethod.NONE
    try:
        done = subprocess.run(
            [*_program(), "--method"], capture_output=True, text=True, timeout=_CHECK_S, check=True
        )
        return ConfinementMethod(done.stdout.strip())
    except (OSError, subprocess.SubprocessError, ValueError):
        return ConfinementMethod.NONE


def confined(command: Sequence[str], hidden: Sequence[Path]) -> list[str]:
    """Return the command line that starts `command` without sight of these paths."""
    hiding = [word for path in hidden for word in ("--hide", str(path))]
    return [*_program(), *hiding, "--", *command]


def _program() -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve())]


class _Linux:
    """The system calls that Python has no function for. Each raises `OSError`."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)

    def unshare(self, flags: int) -> None:
        self._checked(self._library.unshare(flags))

    def mount(self, source: str, target: str, kind: str, flags: int) -> None:
        encoded = (os.fsencode(text) for text in (source, target, kind))
        self._checked(self._library.mount(*encoded, ctypes.c_ulong(flags), None))

    def landlock_abi(self) -> int:
        """Return the version of Landlock; 0 where there is none."""
        return max(0, int(self._library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))

    def create_ruleset(self, handled: int, scoped: int) -> int:
        packed = struct.pack("=QQQ", handled, 0, scoped)
        given = packed if scoped else packed[:8]  # older kernels know only the first field
        return self._checked(
            self._library.syscall(_CREATE_RULESET, given, ctypes.c_size_t(len(given)), ctypes.c_uint(0))
        )

    def allow(self, ruleset: int, access: int, path: str) -> None:
        """Permit this below a path. A path that is gone, or that Landlock has no rules for, is skipped."""
        try:
            opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        try:
            mode = os.fstat(opened).st_mode
            permitted = access if stat.S_ISDIR(mode) else access & _ON_FILES
            if permitted and not stat.S_ISLNK(mode):  # a link is judged by what it leads to
                rule = struct.pack("=Qi", permitted, opened)
                self._library.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, ctypes.c_uint(0))
        finally:
            os.close(opened)

    def restrict(self, ruleset: int) -> None:
        zero = ctypes.c_ulong(0)
        for capability in _WAYS_AROUND:  # fails for other users, who have none of them
            self._library.prctl(_DROP_CAPABILITY, ctypes.c_ulong(capability), zero, zero, zero)
        self._checked(self._library.prctl(_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero))
        self._checked(self._library.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint(0)))
        os.close(ruleset)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return int(result)


def _confine(system: _Linux, hidden: Sequence[str]) -> ConfinementMethod:
    """Confine this process with the first method that works; return which that was."""
    for method, confine in (
        (ConfinementMethod.NAMESPACE, _cover),
        (ConfinementMethod.LANDLOCK, _permit_the_rest),
    ):
        if _works(lambda confine=confine: confine(system, hidden)):  # type: ignore[misc]  # bound now
            confine(system, hidden)
            return method
    return ConfinementMethod.NONE


def _works(confine: Callable[[], None]) -> bool:
    """Try it in a child: half a confinement cannot be taken back."""
    child = os.fork()
    if child == 0:
        try:
            confine()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _cover(system: _Linux, hidden: Sequence[str]) -> None:
    """Cover the paths with nothing, and close the ways around that."""
    abi = _landlock(system)
    user, group = os.getuid(), os.getgid()
    try:
        system.unshare(_NEW_MOUNTS)  # enough for root
    except PermissionError:
        system.unshare(_NEW_MOUNTS | _NEW_USER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text, encoding="ascii")
    system.mount("none", "/", "", _PRIVATE | _RECURSIVE)
    for path in hidden:
        if os.path.isdir(path):
            system.mount("tmpfs", path, "tmpfs", _READ_ONLY | _NO_SUID | _NO_DEVICES)
        else:
            system.mount("/dev/null", path, "", _BIND)
    if hidden:
        os.chdir(os.getcwd())  # by its path: the folder that we are in may be a hidden one
    ruleset = system.create_ruleset(_REFER, _scope(abi))
    system.allow(ruleset, _REFER, "/")
    system.restrict(ruleset)


def _permit_the_rest(system: _Linux, hidden: Sequence[str]) -> None:
    abi = _landlock(system)
    access = _WRITE_FILE | _READ_FILE | _REMOVE_AND_MAKE | _REFER | (_TRUNCATE if abi >= 3 else 0)
    ruleset = system.create_ruleset(access, _scope(abi))
    for path in _beside(frozenset(hidden)):
        system.allow(ruleset, access, path)
    system.restrict(ruleset)


def _beside(hidden: frozenset[str]) -> Iterator[str]:
    """The shortest list of paths that covers everything but what is hidden."""
    above = {str(parent) for path in hidden for parent in Path(path).parents}
    if not above:
        yield "/"
    for folder in above:
        try:
            inside = [entry.path for entry in os.scandir(folder)]
        except OSError:
            continue
        yield from (path for path in inside if path not in above and path not in hidden)


def _landlock(system: _Linux) -> int:
    abi = system.landlock_abi()
    if abi < _ABI_MIN:
        raise OSError(f"Landlock ABI {_ABI_MIN} is needed, this is {abi}")
    return abi


def _scope(abi: int) -> int:
    return _SCOPE_SIGNAL if abi >= 6 else 0


def _main(words: list[str]) -> None:
    if words == ["--method"]:
        sys.stdout.write(_confine(_Linux(), []))
        return
    end = words.index("--")
    hidden = {os.path.realpath(path) for path in words[1:end:2]}
    # Where one is in another, the outer one covers both.
    outer = [path for path in hidden if not any(str(above) in hidden for above in Path(path).parents)]
    command = words[end + 1 :]
    if _confine(_Linux(), [path for path in outer if os.path.exists(path)]) is ConfinementMethod.NONE:
        sys.stderr.write("mew: this system does not let a program be confined; use --unconfined\n")
        sys.exit(_CANNOT_START)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_START)


if __name__ == "__main__":
    _main(sys.argv[1:])
