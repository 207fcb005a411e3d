"""Labels: questions with their gold passages, loaded from files or written one at a time.

Pipeline: file -> [triage] -> rag_labels_in -> rag_labels -> rag_label_passages -> triage views.
A loaded label replaces an older one of the same id wholly: the views read the newest load's rows.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import groupby
from operator import itemgetter
from typing import Any

from ragotel.errors import NotFoundError
from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage.fields import FieldError, flag_of, id_of, ids_of, require, text_of, texts_of
from ragotel.triage.lines import Line, Progress, Report, kind, no_progress, read_lines
from ragotel.triage.question import Conditions, Question

COLUMNS = (
    *("label_id", "passage", "passage_count", "label_set", "split", "population", "principal"),
    *("question", "expected_answer", "answerable", "chunk_ids", "doc_ids", "spans", "text"),
    *("lure_chunk_ids", "lure_spans", "extra", "loaded_at"),
)
_KNOWN_KEYS = {
    *("label_id", "set", "split", "population", "principal", "question", "expected_answer"),
    *(
        "answerable",
        "passages",
        "lures",
        "gold_chunk_ids",
        "gold_doc_ids",
        "gold_spans",
        "gold_text",
    ),
}
_MOST_PASSAGES = 2**16 - 1
SHOWN = 5
"""So many chunk ids that no manifest has are named one by one."""


@dataclass(frozen=True)
class Passage:
    """A gold passage: any of its chunk ids, documents and wordings will do."""

    chunk_ids: list[str] = field(default_factory=list)
    doc_ids: list[str] = field(default_factory=list)
    spans: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.chunk_ids or self.doc_ids or self.spans or self.text.strip())


@dataclass(frozen=True)
class Label:
    """A question with its gold passages, all of which are needed."""

    question: str
    label_id: str
    label_set: str = "default"
    split: str = ""
    population: str = ""
    principal: str = ""
    expected_answer: str = ""
    answerable: bool = True
    passages: tuple[Passage, ...] = ()
    lure_chunk_ids: list[str] = field(default_factory=list)
    lure_spans: list[str] = field(default_factory=list)
    extra: str = ""

    def rows(self, loaded_at: datetime) -> list[tuple[Any, ...]]:
        """Its rows as COLUMNS has them: one per passage, numbered from 1, or one with passage 0."""
        passages = list(enumerate(self.passages, 1)) or [(0, Passage())]
        return [
            (
                *(self.label_id, number, len(self.passages), self.label_set, self.split),
                *(self.population, self.principal, self.question, self.expected_answer),
                *(self.answerable, passage.chunk_ids, passage.doc_ids, passage.spans, passage.text),
                *(self.lure_chunk_ids, self.lure_spans, self.extra, loaded_at),
            )
            for number, passage in passages
        ]


def derived_label_id(label_set: str, question: str) -> str:
    """The id of a label that was given none: the same for the same set and normalised question."""
    name = f"{label_set}\0{normalise(question).strip(' ')}"
    return "label-" + hashlib.sha256(name.encode()).hexdigest()[:16]


def parse_label(record: Mapping[str, Any]) -> Label:
    """Read one object of a labels file, in the long or the short form.

    Raises:
        FieldError: A value has the wrong type, or the label cannot be used.
    """
    question = text_of(record, "question")
    require(normalise(question), "question")
    label_set = text_of(record, "set") or "default"
    lures = record.get("lures") or {}
    if not isinstance(lures, dict):
        raise FieldError(f"lures is {kind(lures)}, an object is wanted")
    unknown = {key: value for key, value in record.items() if key not in _KNOWN_KEYS}
    return Label(
        question=question,
        label_id=id_of(record, "label_id") or derived_label_id(label_set, question),
        label_set=label_set,
        split=text_of(record, "split"),
        population=text_of(record, "population"),
        principal=id_of(record, "principal"),
        expected_answer=text_of(record, "expected_answer"),
        answerable=flag_of(record, "answerable", True),
        passages=_passages(record),
        lure_chunk_ids=ids_of(lures, "chunk_ids"),
        lure_spans=texts_of(lures, "spans"),
        extra=json.dumps(unknown, ensure_ascii=False) if unknown else "",
    )


def _passages(record: Mapping[str, Any]) -> tuple[Passage, ...]:
    short = Passage(
        chunk_ids=ids_of(record, "gold_chunk_ids"),
        doc_ids=ids_of(record, "gold_doc_ids"),
        spans=texts_of(record, "gold_spans"),
        text=text_of(record, "gold_text"),
    )
    given = record.get("passages")
    if given is not None and not isinstance(given, list):
        raise FieldError(f"passages is {kind(given)}, a list is wanted")
    if given and not short.is_empty:
        raise FieldError("passages and gold_… exclude each other")
    passages = [_passage(entry, number) for number, entry in enumerate(given or [], 1)]
    if all(passage.is_empty for passage in passages):
        return () if short.is_empty else (short,)
    for number, passage in enumerate(passages, 1):
        if passage.is_empty:
            raise FieldError(f"passage {number} names no chunk, document, span or text")
    if len(passages) > _MOST_PASSAGES:
        raise FieldError(f"{len(passages)} passages, at most {_MOST_PASSAGES} can be kept")
    return tuple(passages)


def _passage(entry: Any, number: int) -> Passage:
    if not isinstance(entry, dict):
        raise FieldError(f"passage {number} is {kind(entry)}, an object is wanted")
    try:
        return Passage(
            chunk_ids=ids_of(entry, "chunk_ids"),
            doc_ids=ids_of(entry, "doc_ids"),
            spans=texts_of(entry, "spans"),
            text=text_of(entry, "text"),
        )
    except FieldError as error:
        raise FieldError(f"passage {number}: {error}") from error


def load_labels(store: Store, paths: Iterable[str], progress: Progress = no_progress) -> Report:
    """Load labels files; a label that stands twice counts as its last line says."""
    report = Report()
    found: dict[str, tuple[Line, Label]] = {}
    for line in read_lines(paths, report, progress):
        try:
            label = parse_label(line.value)
        except FieldError as error:
            report.refuse(line, str(error))
            continue
        if label.label_id in found:
            report.notes.append(f"{line} replaces {found[label.label_id][0]} ({label.label_id})")
        found[label.label_id] = (line, label)
        if not label.passages and label.answerable:
            report.notes.append(_goldless(line, label))
    write_labels(store, [label for _, label in found.values()])
    report.loaded = len(found)
    report.notes += strange_chunk_ids(store, [label for _, label in found.values()])
    return report


def _goldless(line: Line, label: Label) -> str:
    """What to say of a label that asks for nothing; a mistyped key is the usual reason."""
    told = f"{line}: label {label.label_id} names no passage, so that every verdict is unknown"
    for key in json.loads(label.extra) if label.extra else ():
        if near := difflib.get_close_matches(key, _KNOWN_KEYS, 1):
            return f"{told}; did {key!r} mean {near[0]!r}?"
    return f"{told} (answerable: false says that the corpus holds no answer)"


def strange_chunk_ids(store: Store, labels: Iterable[Label]) -> list[str]:
    """Name labelled chunk ids that no manifest has, the nearest one beside it; at most `SHOWN`."""
    wanted = {
        chunk_id: label.label_id
        for label in labels
        for passage in label.passages
        for chunk_id in passage.chunk_ids
    }
    if not wanted or not store.scalar("select count() from rag_index_chunks"):
        return []
    ids, strange = list(wanted), []
    for start in range(0, len(ids), 1_000):
        batch = ids[start : start + 1_000]
        known = store.query(
            "select distinct chunk_id from rag_index_chunks where chunk_id in {ids:Array(String)}",
            {"ids": batch},
        ).result_rows
        strange += sorted(set(batch) - {row[0] for row in known})
    notes = []
    for chunk_id in strange[:SHOWN]:
        near = store.scalar(
            "select chunk_id from rag_index_chunks "
            "order by ngramDistance(chunk_id, {id:String}) limit 1",
            {"id": chunk_id},
        )
        notes.append(
            f"Label {wanted[chunk_id]} names the chunk {chunk_id!r}, which no manifest has "
            f"(the nearest is {near!r})"
        )
    if len(strange) > SHOWN:
        notes.append(f"{len(strange) - SHOWN} more labelled chunk ids are in no manifest")
    return notes


def write_labels(store: Store, labels: Iterable[Label]) -> None:
    """Write *labels* as one load: every row has the same time, later than any load before."""
    loaded_at = _next_load_time(store)
    rows = [row for label in labels for row in label.rows(loaded_at)]
    store.insert("rag_labels_in", rows, COLUMNS)


def _next_load_time(store: Store) -> datetime:
    newest: datetime = store.scalar("select max(loaded_at) from rag_labels")
    after = newest.replace(tzinfo=timezone.utc) + timedelta(microseconds=1)
    now = datetime.now(timezone.utc)
    return after if after > now else now


def labels_question(
    *, label_set: str | None = None, label_id: str | None = None, limit: int = 100
) -> Question:
    """One row per label as it was loaded last: its sets, question and number of passages."""
    where = Conditions()
    if label_set is not None:
        # Without its table's name it would be the aggregate that is called so.
        where.add("passages.label_set = {label_set:String}", label_set=label_set)
    where.equal("label_id", label_id)
    where.parameters["limit"] = limit
    return Question(
        "select\n"
        "    label_id, any(label_set) as label_set, any(split) as split,\n"
        "    any(population) as population, any(answerable) as answerable,\n"
        "    any(passage_count) as passage_count,\n"
        "    arrayDistinct(groupArrayArray(chunk_ids)) as chunk_ids,\n"
        "    arrayDistinct(groupArrayArray(spans)) as spans,\n"
        "    any(question) as question, any(expected_answer) as expected_answer\n"
        f"from rag_label_passages as passages\n{where}\ngroup by label_id\n"
        "order by label_set, label_id\nlimit {limit:UInt32}",
        where.parameters,
    )


def check_label(store: Store, label_id: str) -> None:
    """See that the label exists.

    Raises:
        NotFoundError: It does not.
    """
    found = store.scalar(
        "select count() from rag_labels where label_id = {label_id:String}", {"label_id": label_id}
    )
    if not found:
        raise NotFoundError(
            f"There is no label {label_id!r}; `ragotel labels list` shows those that there are."
        )


def read_label(store: Store, label_id: str) -> Label:
    """The label as it was loaded last.

    Raises:
        NotFoundError: There is none of that id.
    """
    check_label(store, label_id)
    return _read_labels(store, "label_id = {wanted:String}", label_id)[0]


def read_labels(store: Store, label_set: str) -> list[Label]:
    """The labels of a set, each as it was loaded last, by id.

    Raises:
        NotFoundError: No label is in that set.
    """
    of_set = "label_id in (select label_id from rag_labels where label_set = {wanted:String})"
    found = _read_labels(store, of_set, label_set)
    # A label that was loaded into another set since is that set's.
    labels = [label for label in found if label.label_set == label_set]
    if not labels:
        raise NotFoundError(
            f"No label is in the set {label_set!r}; "
            "`ragotel labels list` shows the sets that there are."
        )
    return labels


def _read_labels(store: Store, condition: str, wanted: str) -> list[Label]:
    rows = store.rows(
        f"select * from rag_labels final where {condition}\n"  # noqa: S608 (bound)
        "order by label_id, loaded_at desc, passage",
        {"wanted": wanted},
    )
    return [
        _label([row for row in part if row["loaded_at"] == part[0]["loaded_at"]])
        for part in (list(group) for _, group in groupby(rows, key=itemgetter("label_id")))
    ]


def _label(rows: list[dict[str, Any]]) -> Label:
    """The label that the rows of one load make."""
    first = rows[0]
    return Label(
        question=first["question"],
        label_id=first["label_id"],
        label_set=first["label_set"],
        split=first["split"],
        population=first["population"],
        principal=first["principal"],
        expected_answer=first["expected_answer"],
        answerable=bool(first["answerable"]),
        passages=tuple(
            Passage(list(row["chunk_ids"]), list(row["doc_ids"]), list(row["spans"]), row["text"])
            for row in rows
            if row["passage"] > 0
        ),
        lure_chunk_ids=list(first["lure_chunk_ids"]),
        lure_spans=list(first["lure_spans"]),
        extra=first["extra"],
    )
