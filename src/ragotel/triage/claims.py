"""Claims: does a text state a claim? The twin of sql/functions/rag_contains.sql.

Pipeline: texts that are not in the store yet -> [triage] -> probes, ablations
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from ragotel.text import normalise


def states_any(text: str, claims: Iterable[str]) -> bool:
    """Whether *text*, as it stands, states one of *claims*, which are normalised and stripped."""
    body = normalise(text)
    return any(states(body, claim) for claim in claims)


def states(body: str, claim: str) -> bool:
    """Whether normalised *body* states normalised *claim*.

    No letter or digit may adjoin a letter or digit at the claim's ends.
    """
    start = body.find(claim) if claim else -1
    while start >= 0:
        end = start + len(claim)
        before, after = body[start - 1 : start] if start else "", body[end : end + 1]
        if not (_adjoin(before, claim[0]) or _adjoin(claim[-1], after)):
            return True
        start = body.find(claim, start + 1)
    return False


def _adjoin(left: str, right: str) -> bool:
    return all(side and unicodedata.category(side)[0] in "LN" for side in (left, right))
