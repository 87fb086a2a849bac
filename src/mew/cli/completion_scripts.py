"""What a shell is told so that it asks `mew` what may come next, and where a shell looks for it.

The shell hands over what is typed so far and reads lines: first whether values follow, or files or folders are to be
completed as it does that itself, then a value a line. It evaluates nothing of what it reads, and what is typed goes
through a pipe, for a token may be in it, and who else is on this machine sees the arguments of programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

__all__ = ["MARK", "Place", "Shell", "place_of", "script_of"]

MARK: Final = "made by 'mew completion"
"""In the second line of each script at the latest: what has it is ours to overwrite."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True, slots=True)
class Place:
    """`script` is where it goes. Where a shell would not find it there by itself, `startup` gets `line`."""

    script: Path
    startup: Path | None = None
    line: str = ""


_BASH: Final = """\
# Completion of mew for bash, made by 'mew completion bash'.

_mew() {
    local line way=
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $way ]]; then way=$line; else COMPREPLY+=("$line"); fi
    done < <(printf '%s\\0' "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" | "$1" __complete bash 2>/dev/null)
    case $way in
        files) compopt -o default ;;
        folders) compopt -o dirnames ;;
        values)
            compopt -o nosort
            if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi
            ;;
    esac 2>/dev/null
    return 0
}

complete -F _mew mew
"""

_ZSH: Final = """\
#compdef mew
# Completion of mew for zsh, made by 'mew completion zsh'.

_mew() {
    local line way= value
    local -a described
    while IFS= read -r line; do
        if [[ -z $way ]]; then
            way=$line
        else
            value=${line%%$'\\t'*}
            described+=("${value//:/\\\\:}${${line#$value}/$'\\t'/:}")
        fi
    done < <(
        printf '%s\\0' "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" | "${(Q)words[1]}" __complete zsh 2>/dev/null
    )
    case $way in
        files) _files ;;
        folders) _files -/ ;;
        values)
            if [[ ${described[1]%%:*} == *= ]]; then
                _describe -V mew described -S ''
            else
                _describe -V mew described
            fi
            ;;
    esac
}

if [[ $funcstack[1] == _mew ]]; then _mew "$@"; else compdef _mew mew; fi
"""

_FISH: Final = """\
# Completion of mew for fish, made by 'mew completion fish'.

function __mew_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l said (printf '%s\\0' $words "$typed" | $program __complete fish 2>/dev/null)
    switch "$said[1]"
        case values
            set -e said[1]
            string join \\n -- $said
        case files
            __fish_complete_path "$typed"
        case folders
            __fish_complete_directories "$typed"
    end
end

complete --command mew --no-files --keep-order --arguments '(__mew_complete)'
"""

_SCRIPTS: Final = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}
_LOADERS: Final = (
    "/usr/share/bash-completion/bash_completion",
    "/usr/local/share/bash-completion/bash_completion",
    "/opt/homebrew/share/bash-completion/bash_completion",
)


def script_of(shell: Shell) -> str:
    """All of it, to be sourced, or found where `place_of` says."""
    return _SCRIPTS[shell]


def place_of(shell: Shell, home: Path, environ: Mapping[str, str]) -> Place:
    """Where this shell looks when it starts, by what is set for it and by what is installed."""
    data = _folder(environ, "XDG_DATA_HOME") or home / ".local" / "share"
    match shell:
        case Shell.FISH:
            config = _folder(environ, "XDG_CONFIG_HOME") or home / ".config"
            return Place(config / "fish" / "completions" / "mew.fish")
        case Shell.ZSH:
            script = data / "zsh" / "site-functions" / "_mew"
            startup = (_folder(environ, "ZDOTDIR") or home) / ".zshrc"
            line = f"fpath=({_shown(script.parent, home)} $fpath); autoload -Uz compinit && compinit"
            return Place(script, startup, line)
        case Shell.BASH:
            user = _folder(environ, "BASH_COMPLETION_USER_DIR") or data / "bash-completion"
            script = user / "completions" / "mew"
            if any(map(_is_file, _LOADERS)):  # it loads what is there when it is needed
                return Place(script)
            return Place(script, home / ".bashrc", f"source {_shown(script, home)}")


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    said = environ.get(name, "")
    return Path(said) if said.startswith("/") else None


def _is_file(path: str) -> bool:
    return Path(path).is_file()


def _shown(path: Path, home: Path) -> str:
    """For a line in a file that is read by a shell."""
    if path.is_relative_to(home):
        return f'"$HOME/{path.relative_to(home)}"'
    return f'"{path}"'
