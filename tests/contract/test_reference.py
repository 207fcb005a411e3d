"""Pages and code say the same: generated pages are fresh, names exist, links lead somewhere."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import ragotel
from ragotel import attributes
from ragotel.cli.commands import TABLE
from ragotel.settings import Settings
from ragotel.store import Store, catalog
from served import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])
HAND_WRITTEN = [p for p in PAGES if "Written by `make docs`" not in p.read_text("utf-8")]
_COLUMN_TYPE = re.compile(r"^(\| `\w+` \|) `[^`]+` \|", re.M)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
_OBJECT = re.compile(r"\b(?:rag|triage|dist|alert|ab)_[a-z_]+\b")
_KEY = re.compile(r"`((?:rag|gen_ai)\.[a-z0-9_.]+)`")
_COMMAND = re.compile(r"`ragotel (?!needs )([a-z]+)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_VARIABLE = re.compile(r"\bRAGOTEL_[A-Z_]+\b")
_API = re.compile(r"\bragotel\.([a-z_]+)\(")
_SCRIPTS = {"--quick", "--database", "--preload", "--max-tasks-per-child"}
"""Options on our pages that are not of `ragotel`."""
_OWN_VARIABLES = {
    "RAGOTEL_STORE",
    "RAGOTEL_TOKEN",
    "RAGOTEL_READER_TOKEN",
    "RAGOTEL_SHARED",
    "RAGOTEL_RECORD",  # read by the golden tests
}


def _generator() -> ModuleType:
    path = REPOSITORY / "docs" / "generate.py"
    found = importlib.util.spec_from_file_location("ragotel_docs_generate", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh(store: Store) -> None:
    """`make docs` would change no page; types are the engine's own affair."""
    fresh = _generator().pages(store)
    stale = [
        name
        for name, text in fresh.items()
        if _COLUMN_TYPE.sub(r"\1", text)
        != _COLUMN_TYPE.sub(r"\1", (REPOSITORY / "docs" / name).read_text("utf-8"))
    ]
    assert stale == [], "run `make docs`"


def test_every_column_of_the_main_views_has_a_meaning(store: Store) -> None:
    """columns.toml tells all of their columns, and none that is no more."""
    generator = _generator()
    told = tomllib.loads((REPOSITORY / "docs" / "columns.toml").read_text("utf-8"))
    alerts = [file.name for file in catalog.views() if file.name.startswith("alert_")]
    views = [*(name for name in told if name not in ("any", "alert")), *alerts]
    assert len(views) >= 13
    rows = store.rows(
        "select table, name from system.columns "
        "where database = currentDatabase() and table in {views:Array(String)}",
        {"views": views},
    )
    columns = {(row["table"], row["name"]) for row in rows}
    untold = sorted(
        f"{view}.{name}" for view, name in columns if not generator.column_meanings(view).get(name)
    )
    own = {(view, name) for view in views for name in told["alert" if view in alerts else view]}
    unused = set(told["any"]) - {name for _, name in columns}
    assert (untold, sorted(own - columns), unused) == ([], [], set()), "write docs/columns.toml"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    """Every link that stays in the repository has something at its end."""
    links = _LINK.findall(page.read_text("utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


def _used(pattern: re.Pattern[str]) -> dict[str, str]:
    """What *pattern* finds on the hand-written pages, with the page where it stands."""
    return {
        found: page.name
        for page in HAND_WRITTEN
        for found in pattern.findall(page.read_text("utf-8"))
    }


def test_tables_and_views_on_pages_exist() -> None:
    """A page names no table, view or function that the schema lacks."""
    known = {file.name for file in (*catalog.views(), *catalog.functions())}
    known |= {file.name.partition("_")[2] for file in catalog.tables()}
    assert {name: page for name, page in _used(_OBJECT).items() if name not in known} == {}


def test_attributes_on_pages_exist() -> None:
    """A page names no span attribute that is not in attributes.py."""
    known = {value for value in vars(attributes).values() if isinstance(value, str)}
    unknown = {key: page for key, page in _used(_KEY).items() if key not in known}
    # One page tells what is read of other people's spans.
    assert {key: page for key, page in unknown.items() if page != "conventions.md"} == {}


def test_commands_and_options_on_pages_exist() -> None:
    """A page names no command or option that `ragotel` does not have."""
    assert {name: page for name, page in _used(_COMMAND).items() if name not in TABLE} == {}
    known = set(re.findall(r"`(--[a-z-]+)", (REPOSITORY / "docs/commands.md").read_text("utf-8")))
    known |= {"--help", "--version", *_SCRIPTS}
    pages = {p.name for p in HAND_WRITTEN} - {"CONTRIBUTING.md"}
    unknown = {o: p for o, p in _used(_OPTION).items() if o not in known and p in pages}
    assert unknown == {}


def test_variables_on_pages_exist() -> None:
    """A page names no variable that nothing reads."""
    known = {f"RAGOTEL_{name.upper()}" for name in Settings.__dataclass_fields__}
    known |= _OWN_VARIABLES
    assert {name: page for name, page in _used(_VARIABLE).items() if name not in known} == {}


def test_the_api_on_pages_exists_and_all_of_it_stands_there() -> None:
    """Pages call only what `ragotel` exports, and instrumenting.md names all of that."""
    assert {n: page for n, page in _used(_API).items() if n not in ragotel.__all__} == {}
    page = (REPOSITORY / "docs" / "instrumenting.md").read_text("utf-8")
    assert [name for name in ragotel.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_every_view_is_on_the_changelog() -> None:
    """Who upgrades reads there which views there are."""
    text = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    shown = [f.name for f in catalog.views() if f.layer != "views/1_entities"]
    assert [name for name in shown if name not in text] == []


def test_attributes_are_unique_and_documented() -> None:
    """No two constants name one attribute, and each has a docstring with its type."""
    source = (REPOSITORY / "src/ragotel/attributes.py").read_text("utf-8")
    body = ast.parse(source).body
    assigned = [node for node in body if isinstance(node, ast.Assign)]
    values = Counter(ast.literal_eval(node.value) for node in assigned)
    assert [value for value, count in values.items() if count > 1] == []
    documented = {
        id(node)
        for node, following in itertools.pairwise(body)
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
    }
    assert [ast.unparse(node) for node in assigned if id(node) not in documented] == []


def test_the_triage_page_names_every_value_of_a_verdict() -> None:
    """Each bucket, loss stage, attribution, state and missing evidence has its words there."""
    sql = next(file.text for file in catalog.views() if file.name == "triage_verdicts")
    page = (REPOSITORY / "docs" / "triage.md").read_text("utf-8")
    loss_stages = set(
        re.findall(r"'([a-z_]+(?:_indexed|_leg|_cutoff|_limit|_demoted|filtered))'", sql)
    )
    buckets = {
        *("corpus_gap", "retrieval_miss", "context_problem", "generation_error", "passed"),
        *("ungraded", "not_answerable", "unknown"),
    }
    attributions = {"ingest", "retrieval", "prompt-assembly", "chunking", "generation", "none"}
    states = {"1", "2a", "2b", "3", "2b_or_3"}
    missing = {"index_version", "manifest", "chunk_texts", "candidates", "prompt"}
    for values in (loss_stages, buckets, attributions, states, missing):
        assert values
        assert {value for value in values if f"'{value}'" not in sql} == set()
        assert {value for value in values if f"`{value}`" not in page} == set()


def test_python_here_can_read_the_project_file() -> None:
    """The lowest Python that the pages promise is the one that the package asks for."""
    project = (REPOSITORY / "pyproject.toml").read_text("utf-8")
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    assert 'requires-python = ">=3.10"' in project
    assert "Python 3.10 or newer" in readme
    assert sys.version_info >= (3, 10)
