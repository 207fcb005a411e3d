"""pgvector: a search in SQL, recorded by a block, as rows alone do not tell what they are.

Pipeline: call site -> [instrument.pgvector] -> blocks -> recorder

    with pgvector.searching(sql, query=question, index="docs") as stage:
        rows = cursor.execute(sql, parameters).fetchall()
        stage.candidates(rows)
"""

from __future__ import annotations

import re
from typing import Any

from ragotel.blocks import StageBlock, stage

_OPERATORS = {
    "<->": ("l2", False),
    "<=>": ("cosine_distance", False),
    "<#>": ("negative_dot", False),
    "<+>": ("l1", False),
    "<~>": ("hamming", False),
    "<%>": ("jaccard_distance", False),
}
"""pgvector's operators: all of them are distances."""
_OPERATOR = re.compile("|".join(map(re.escape, _OPERATORS)))
_LIMIT = re.compile(r"\blimit\s+(\d+)", re.IGNORECASE)


def searching(sql: str, **options: Any) -> StageBlock:
    """Record a block as one retrieval: kind and direction of its scores are read from *sql*.

    Rows may be of any shape that `candidates` understands, best as dicts with id, distance and
    text. Further options are those of `ragotel.retrieve`.
    """
    given: dict[str, Any] = {"leg": "pgvector"}
    operators = set(_OPERATOR.findall(sql))
    if len(operators) == 1:
        given["score_kind"], given["higher_is_better"] = _OPERATORS[operators.pop()]
    limits = _LIMIT.findall(sql)
    if limits:
        given["top_k"] = int(limits[-1])
    return stage("retrieve", **{**given, **options})
