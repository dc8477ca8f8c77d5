"""The command line in Markdown: usage, arguments and options of each verb of `spurtle`."""

import argparse
import textwrap
from collections.abc import Sequence

from docs.markdown import table
from spurtle_sim.cli.command import build_parser

__all__ = ["command", "summary"]


def summary() -> str:
    """Return a table of the verbs."""
    _, verbs = build_parser()
    rows = ((f"[`{name}`](#spurtle-{name})", parser.description or "") for name, parser in verbs.items())
    return table(("verb", "action"), *rows)


def command(verb: str) -> str:
    """Return the usage, the arguments and the options of a verb."""
    parser = build_parser()[1][verb]
    # argparse has no public list of the arguments of a parser.
    arguments: list[argparse.Action] = vars(parser)["_actions"]
    actions = [action for action in arguments if action.dest != "help"]
    parts = [f"```text\n{_wrapped(['spurtle', verb, *map(_usage, actions)])}\n```"]
    if actions:
        parts.append(table(("argument", "meaning"), *((f"`{_name(action)}`", _meaning(action)) for action in actions)))
    if parser.epilog:
        parts.append(textwrap.fill(parser.epilog, 120))
    return "\n\n".join(parts)


def _wrapped(words: Sequence[str]) -> str:
    """Return `words` in lines of at most 100 columns. No word is broken."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > 100:
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines)[1:]


def _usage(action: argparse.Action) -> str:
    """Return the word or words of the usage line, in brackets if they may be left out."""
    name = action.option_strings[0] if action.option_strings else ""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    text = f"{name} {value}".strip()
    if action.nargs == argparse.REMAINDER:
        text += "..."
    optional = not action.required if action.option_strings else action.nargs in ("?", argparse.REMAINDER)
    return f"[{text}]" if optional else text


def _name(action: argparse.Action) -> str:
    """Return the name in the first column: all spellings of an option, and its value."""
    if not action.option_strings:
        return str(action.metavar)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {action.metavar or action.dest.upper()}"


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "").replace("|", "\\|")
    if action.choices:
        text += f". One of {', '.join(f'`{choice}`' for choice in action.choices)}"
    return text[:1].upper() + text[1:] + "."
