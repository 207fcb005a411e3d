"""Writes the reference pages from what they describe: attributes.py, the SQL files, the commands.

`make docs` runs it; a test fails where a page is stale.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from ragotel import attributes
from ragotel.cli.commands import TABLE, LazyGroup
from ragotel.cli.commands import group as commands
from ragotel.store import Store, catalog, migrate, open_store
from ragotel.store.catalog import SqlFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parent
NOTE = "<!-- Written by `make docs`; edit {source} instead. -->\n"
_LAYERS = {
    "views/1_entities": "Entities: what happened, request by request",
    "views/2_triage": "Triage: what went wrong, and why",
    "views/3_distributions": "Distributions: how often",
    "views/4_alerts": "Alerts: limits that are broken",
    "views/5_comparisons": "Comparisons: two arms, question by question",
}
_TABLE = "tables"


def main() -> None:
    """Write every generated page."""
    with (
        tempfile.TemporaryDirectory(prefix="ragotel-docs-") as folder,
        open_store(f"chdb://{folder}/store", follow_server=False) as store,
    ):
        migrate(store)
        for name, text in pages(store).items():
            (FOLDER / name).write_text(text, "utf-8")
            print(f"docs/{name}")


def pages(store: Store) -> dict[str, str]:
    """The generated pages by name; *store* has the schema, whose columns it tells."""
    return {
        "attributes.md": attributes_page(),
        "commands.md": commands_page(),
        "views.md": views_page(store),
    }


def attributes_page() -> str:
    """Every span attribute, as `ragotel/attributes.py` says."""
    lines = [
        "# Attributes: what stands on a span",
        "",
        NOTE.format(source="src/ragotel/attributes.py"),
        "The instrumentation scope is named `ragotel`, the schema of this table is version "
        f"{attributes.SCHEMA_VERSION} (`rag.schema`).",
        "Keys of OpenTelemetry's GenAI convention are used as it spells them; `rag.*` is for what "
        "it lacks.",
        "A list is one JSON text in one string attribute: flattened keys overflow the SDK's limit "
        "of 128 attributes, and array attributes are stored differently by different collectors.",
        "",
        "A candidate in a list is an object: `id`, `score` (null where there is none; "
        "`score_state` says `nan`, `inf` or `invalid` where it was no finite number), `sha` (of "
        "its normalised text, told once per request and id), `tokens`, `chars`, `kept_chars`, "
        "`doc_id`, `doc_version`, `superseded`, `leg`, `rank`.",
        "What is not known is left out.",
    ]
    for title, rows in _attribute_groups():
        lines += ["", f"## {title}", "", "| key | constant | meaning |", "|---|---|---|"]
        lines += [f"| `{key}` | `{name}` | {meaning} |" for name, key, meaning in rows]
    return "\n".join(lines) + "\n"


def _attribute_groups() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The constants of attributes.py under the comments that head them, with their docstrings."""
    source = inspect.getsource(attributes)
    heads = [
        (number, line[2:].rstrip(".:"))
        for number, line in enumerate(source.splitlines(), 1)
        if line.startswith("# On ")
    ]
    constants = list(_constants(source))
    for (start, title), end in zip(heads, [n for n, _ in heads[1:]] + [1 << 30], strict=True):
        yield title, [found[1:] for found in constants if start < found[0] < end]


def _constants(source: str) -> Iterator[tuple[int, str, str, str]]:
    body = ast.parse(source).body
    for statement, following in itertools.pairwise(body):
        if not (isinstance(statement, ast.Assign) and isinstance(following, ast.Expr)):
            continue
        (target,) = statement.targets
        if isinstance(target, ast.Name) and isinstance(following.value, ast.Constant):
            value = ast.literal_eval(statement.value)
            meaning = " ".join(str(following.value.value).split()).replace("|", "\\|")
            yield statement.lineno, target.id, value, meaning


def views_page(store: Store) -> str:
    """Every table and view: its question, its grain, what it reads, its columns."""
    lines = [
        "# Views: what can be asked in SQL",
        "",
        NOTE.format(source="the heads of src/ragotel/sql/**/*.sql and docs/columns.toml"),
        "Each file of the schema is one statement that runs as it stands; `ragotel init --print` "
        "prints all of them in order.",
        "Every view joins on `(trace_id, request_id)`: one trace may hold several requests.",
        "All times are UTC.",
    ]
    for layer, title in _LAYERS.items():
        files = [file for file in catalog.views() if file.layer == layer]
        if files:
            lines += ["", f"## {title}"]
        for file in files:
            lines += ["", *_described(store, file)]
    lines += ["", "## Tables: what holds data"]
    for file in catalog.tables():
        if "create materialized view" not in file.text.lower():
            lines += ["", *_described(store, file)]
    lines += ["", "## Functions"]
    for file in catalog.functions():
        lines += ["", f"### `{file.name}`", "", f"{_sentence(file.head['answers'])}"]
        lines += _notes(file)
    return "\n".join(lines) + "\n"


def _described(store: Store, file: SqlFile) -> Iterator[str]:
    name = re.sub(r"^\d+_", "", file.name) if file.layer == _TABLE else file.name
    if file.layer == _TABLE:
        name = _created_name(file)
    yield f"### `{name}`"
    yield ""
    yield f"{_sentence(file.head['answers'])}  "
    yield f"Grain: {file.head['grain']}.  "
    yield f"Reads: {file.head['reads']}."
    yield from _notes(file)
    yield ""
    meanings = column_meanings(name)
    columns = [(column, kind, meanings.get(column, "")) for column, kind in _columns(store, name)]
    if any(meaning for _, _, meaning in columns):
        yield "| column | type | meaning |"
        yield "|---|---|---|"
        yield from (f"| `{column}` | `{kind}` | {told} |" for column, kind, told in columns)
    else:
        yield "| column | type |"
        yield "|---|---|"
        yield from (f"| `{column}` | `{kind}` |" for column, kind, _ in columns)


def column_meanings(view: str) -> dict[str, str]:
    """What columns.toml says of the columns of *view*; nothing where it has no section for it."""
    told = tomllib.loads((FOLDER / "columns.toml").read_text("utf-8"))
    section = "alert" if view.startswith("alert_") else view
    return {**told["any"], **told[section]} if section in told else {}


def _created_name(file: SqlFile) -> str:
    found = re.search(r"create table if not exists (\w+)", file.text)
    return found[1] if found else file.name


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _notes(file: SqlFile) -> list[str]:
    """The comment below the three-line head, as a paragraph."""
    comments = []
    for line in file.text.splitlines()[3:]:
        if not line.startswith("--"):
            break
        comments.append(line[2:].strip())
    return ["", " ".join(comments)] if comments else []


def _columns(store: Store, name: str) -> list[tuple[str, str]]:
    rows = store.rows(
        "select name, type from system.columns "
        "where database = currentDatabase() and table = {name:String} order by position",
        {"name": name},
    )
    return [(row["name"], row["type"]) for row in rows]


def commands_page() -> str:
    """Every command with its options, as `--help` tells them."""
    lines = [
        "# Commands",
        "",
        NOTE.format(source="src/ragotel/cli"),
        "Exit codes: 0 fine; 1 the answer is no, a limit is broken or some lines were rejected; "
        "2 wrong use.",
        "A file to load that holds nothing is told on standard error and is no fault; a manifest "
        "of nothing is wrong use.",
        "A fault is one line on standard error; `--debug` shows where it came from.",
        "",
        "| command | does |",
        "|---|---|",
    ]
    lines += [f"| [`ragotel {name}`](#ragotel-{name}) | {TABLE[name].summary} |" for name in TABLE]
    for name in TABLE:
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        lines += _command(command, f"ragotel {name}")
    return "\n".join(lines) + "\n"


def _command(command: click.Command, path: str) -> Iterator[str]:
    yield from ("", f"## `{path}`", "", *_help(command))
    arguments = [_metavar(p) for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *arguments])
    if not isinstance(command, click.Group):
        yield from ("", "```text", usage, "```")
    if options:
        yield from ("", "| option | meaning |", "|---|---|")
        yield from (f"| {_names(option)} | {_meaning(option)} |" for option in options)
    if isinstance(command, click.Group) and not isinstance(command, LazyGroup):
        for name in sorted(command.commands):
            yield from _command(command.commands[name], f"{path} {name}")


def _help(command: click.Command) -> Iterator[str]:
    """The help text; a paragraph that keeps its lines (``\\b``) becomes a block."""
    for number, paragraph in enumerate(inspect.cleandoc(command.help or "").split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith("\b"):
            yield from ("```text", *paragraph.splitlines()[1:], "```")
        else:
            yield from paragraph.replace("|", "\\|").splitlines()


def _metavar(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name if argument.required else f"[{name.strip('[]')}]"


def _names(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or _kind(option)}"
    return ", ".join(f"`{name}{value}`" for name in option.opts)


def _kind(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "NAME"
    return {"integer": "N", "float": "NUMBER", "text": "TEXT"}.get(option.type.name, "N")


def _meaning(option: click.Option) -> str:
    text = option.help or ""
    if isinstance(option.type, click.Choice):
        text += f" One of {', '.join(f'`{choice}`' for choice in option.type.choices)}."
    if option.show_default:
        text += f" Default: `{option.default}`."
    if option.required:
        text += " Required."
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
