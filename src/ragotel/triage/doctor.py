"""Doctor: sends a canary through the real path, looks for it in the store, and says what to mend.

Pipeline: canary -> delivery -> OTLP -> store -> [triage] -> cli. The canary runs in a process of
its own, with this one's environment: as a service would.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragotel.errors import RagotelError
from ragotel.model import CANARY_SERVICE
from ragotel.store import Store, open_store, pending

_CANARY_S = 60
_POLL_S = 0.25
_ENOUGH = 0.99
_EXPECTED = {"retrieve", "assemble", "generate"}

MENDS: Mapping[str, tuple[str, str]] = {
    "share_with_candidates": ("ranked lists", "@ragotel.retrieve on the function that searches"),
    "share_with_ids": ("chunk ids", "@ragotel.retrieve(id_of=lambda hit: hit.my_id)"),
    "share_with_scores": ("scores", "@ragotel.retrieve(score_of=lambda hit: hit.my_score)"),
    "share_with_index_version": (
        "index versions",
        "@ragotel.retrieve(index_version=lambda: index.version)",
    ),
    "share_with_sent_list": ("what was sent", "@ragotel.assemble on the prompt's builder"),
    "share_with_prompt": ("prompts", "@ragotel.assemble on the prompt's builder"),
    "share_with_whole_prompt": (
        "whole prompts",
        "ragotel.configure(content_mode='full', max_text_chars=...)",
    ),
    "share_with_template_version": ("template versions", "@ragotel.assemble(template='answer')"),
}
"""Shares of dist_coverage: what they stand for, and the line of code that raises them."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; *is_fine* None: it could not be told, or is no fault."""

    name: str
    is_fine: bool | None
    found: str
    mend: str = ""


@dataclass
class Diagnosis:
    """All checks in their order."""

    checks: list[Check] = field(default_factory=list)

    @property
    def is_fine(self) -> bool:
        return all(check.is_fine is not False for check in self.checks)

    def add(self, name: str, is_fine: bool | None, found: str, mend: str = "") -> None:
        self.checks.append(Check(name, is_fine, found, mend))


def examine(dsn: str | None, *, wait_s: float = 10.0, days: int = 7) -> Diagnosis:
    """Send the canary, then look into the store, then at what real services record."""
    diagnosis = Diagnosis()
    canary = _send_canary(diagnosis)
    try:
        store = open_store(dsn, create=False)
    except RagotelError as error:
        diagnosis.add("store", False, str(error), "ragotel serve, or --store of the one that runs")
        return diagnosis
    with store:
        if _look_at_schema(store, diagnosis):
            if canary is not None and canary["is_delivered"]:
                _look_for_canary(store, diagnosis, str(canary["request_id"]), wait_s)
            _look_at_services(store, diagnosis, days)
    return diagnosis


def _send_canary(diagnosis: Diagnosis) -> dict[str, Any] | None:
    try:
        run = subprocess.run(
            [sys.executable, "-m", "ragotel.canary"],
            capture_output=True,
            text=True,
            timeout=_CANARY_S,
            check=False,
        )
        canary: dict[str, Any] = json.loads(run.stdout)
    except (subprocess.TimeoutExpired, ValueError, OSError) as error:
        diagnosis.add("canary", False, f"the canary did not run: {type(error).__name__}")
        return None
    reason = next((line for line in run.stderr.splitlines() if line.strip()), "")
    if not canary["is_recording"]:
        diagnosis.add(
            "canary",
            False,
            "recording is off: RAGOTEL_DISABLED or OTEL_SDK_DISABLED is set",
            "unset RAGOTEL_DISABLED OTEL_SDK_DISABLED",
        )
        return None
    where = canary["exporter"] or f"{canary['endpoint']} ({canary['protocol']})"
    diagnosis.add(
        "receiver",
        bool(canary["is_delivered"]),
        f"{where} {'took the canary' if canary['is_delivered'] else 'did not take it'}"
        + ("" if canary["is_delivered"] or not reason else f": {reason}"),
        ""
        if canary["is_delivered"]
        else "ragotel serve; or export RAGOTEL_ENDPOINT=http://HOST:4318",
    )
    is_full = canary["content_mode"] == "full"
    diagnosis.add(
        "texts",
        None if not is_full else True,
        f"content_mode is {canary['content_mode']}",
        "" if is_full else "ragotel.configure(content_mode='full') keeps prompts and chunk texts",
    )
    owner = canary["provider"]
    found = f"owned by {owner}" if owner else "nobody has set one; ragotel needs none"
    diagnosis.add("tracer provider", None, found)
    return canary


def _look_at_schema(store: Store, diagnosis: Diagnosis) -> bool:
    where = store.dsn.path or f"{store.dsn.host}:{store.dsn.port}"
    missing = pending(store)
    engine = f"{where}, database {store.database}, ClickHouse {store.scalar('select version()')}"
    if missing:
        diagnosis.add("store", False, f"{engine}: {len(missing)} steps are missing", "ragotel init")
    else:
        diagnosis.add("store", True, f"{engine}: schema complete")
    return not missing


def _look_for_canary(store: Store, diagnosis: Diagnosis, request_id: str, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        rows = store.rows(
            "select stage, evidence from rag_stages final where request_id = {request_id:String}",
            {"request_id": request_id},
        )
        seen = {row["stage"] for row in rows}
        if seen >= _EXPECTED and _has_request(store, request_id):
            diagnosis.add("arrival", True, f"the canary {request_id} stands in the store, whole")
            return
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    lacking = ", ".join(sorted(_EXPECTED - seen)) or "the request itself"
    diagnosis.add(
        "arrival",
        False,
        f"the receiver took the canary {request_id}; after {wait_s:g} s the store lacks {lacking}",
        "let the collector export to this store, or name the store it exports to by --store",
    )


def _has_request(store: Store, request_id: str) -> bool:
    found = store.scalar(
        "select count() from rag_requests where request_id = {request_id:String}",
        {"request_id": request_id},
    )
    return bool(found)


def _look_at_services(store: Store, diagnosis: Diagnosis, days: int) -> None:
    """What real services recorded over the newest days that the store has, service by service."""
    shares = ",\n".join(
        f"    sumIf(dist.{name} * dist.requests, dist.requests > 0) / asked as {name}"
        for name in MENDS
    )
    rows = store.rows(
        "select\n    service_name, sum(dist.requests) as asked,\n"  # noqa: S608 (columns of ours)
        f"{shares},\n"
        "    sum(dist.capture_errors) as capture_errors, sum(dist.lost_spans) as lost_spans\n"
        "from dist_coverage as dist\n"
        "where day > (\n"
        "        select max(toDate(started_at)) from rag_requests\n"
        "        where service_name != {canary:String}\n"
        "    ) - {days:UInt32}\n"
        "group by service_name\norder by service_name",
        {"days": days, "canary": CANARY_SERVICE},
    )
    for row in rows:
        _look_at_service(diagnosis, row)
    if not rows:
        diagnosis.add("services", None, "no service has recorded a request yet", "@ragotel.request")


def _look_at_service(diagnosis: Diagnosis, row: Mapping[str, Any]) -> None:
    name = f"service {row['service_name'] or '(no name)'}"
    lacks = [
        (what, row[share], mend)
        for share, (what, mend) in MENDS.items()
        if row["asked"] and row[share] is not None and row[share] < _ENOUGH
    ]
    if not lacks:
        diagnosis.add(name, True, f"{row['asked']} requests, all with lists, scores and prompts")
    for what, share, mend in lacks:
        diagnosis.add(
            name, False, f"{100 * share:.0f} % of {row['asked']} requests have {what}", mend
        )
    if row["capture_errors"]:
        found = f"{row['capture_errors']} faults while recording"
        diagnosis.add(name, False, found, "the service's log names each, logger `ragotel`")
    if row["lost_spans"]:
        found = f"{row['lost_spans']} spans were lost on the way"
        diagnosis.add(name, False, found, "select * from rag_losses tells the causes")
