"""``pebench completion``: scripts that complete verbs, options and names in bash, zsh and fish.

The scripts are static: pressing the tab key starts no Python. Plug-ins and files of one's own are not in them.
"""

import argparse
import sys
from collections.abc import Callable, Iterable

from pebench.encodings.registry import encoding_cards
from pebench.engine.executors import EXECUTORS
from pebench.runs.suite import suite_files
from pebench.tasks import TASKS

VALUES: dict[str, Callable[[], Iterable[str]]] = {
    "task": lambda: TASKS, "tasks": lambda: TASKS, "pe": encoding_cards, "suite": suite_files,
    "executor": lambda: EXECUTORS, "encoding": lambda: [*encoding_cards(), *TASKS], "encodings": encoding_cards,
    "names": lambda: [*encoding_cards(), *TASKS, *suite_files()],
    "what": lambda: ("tasks", "encodings", "suites", "executors"),
}  # fmt: skip
"""Names that an argument takes, by its destination in the parser; others complete files."""

BASH = """\
_pebench() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="${{COMP_WORDS[1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{verbs}"
    else
        case "$verb $before" in
{values}
        *) case "$verb" in
{options}
        esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _pebench pebench
"""


def completion_command(options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    from pebench.cli.parser import parser

    top = parser()
    (verbs,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    bash = _bash(verbs.choices)
    scripts = {"bash": bash, "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{bash}"}
    sys.stdout.write(scripts[options.shell] if options.shell in scripts else _fish(verbs.choices))
    return 0


def _known(action: argparse.Action) -> list[str]:
    """Return the words that an argument takes; none where it takes a file, a number or anything."""
    return list(action.choices or VALUES.get(action.dest, list)())


def _bash(verbs: dict[str, argparse.ArgumentParser]) -> str:
    values, options = [], []
    for verb, parser in verbs.items():
        words: list[str] = []
        for action in parser._actions:
            words += action.option_strings or _known(action)
            if action.option_strings and (known := _known(action)):
                values += [f'        "{verb} {name}") words="{" ".join(known)}" ;;' for name in action.option_strings]
        options.append(f'        {verb}) words="{" ".join(words)}" ;;')
    return BASH.format(verbs=" ".join(verbs), values="\n".join(values), options="\n".join(options))


def _fish(verbs: dict[str, argparse.ArgumentParser]) -> str:
    lines = [f"complete -c pebench -n __fish_use_subcommand -f -a '{' '.join(verbs)}'"]
    for verb, parser in verbs.items():
        start = f"complete -c pebench -n '__fish_seen_subcommand_from {verb}'"
        for action in parser._actions:
            known = _known(action)
            names = "".join(f" -l {name[2:]}" for name in action.option_strings if name.startswith("--"))
            given = f" -f -a '{' '.join(known)}'" if known else ""
            takes = " -r" if action.option_strings and action.nargs != 0 else ""
            if names or given:
                lines.append(f"{start}{names}{takes}{given}")
    return "\n".join(lines) + "\n"
