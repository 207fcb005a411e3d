"""The examples as a user runs them: a process each, what it sends loaded into a store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_server import Chat
from offline import INDEX, VERSION, extract

from ragotel.store import Store
from ragotel.store.load import load_files
from ragotel.triage.labels import load_labels
from ragotel.triage.manifest import Version, load_manifest
from receiver import Receiver, http_receiver
from served import REPOSITORY, find_free_port, wait_until

EXAMPLES = REPOSITORY / "examples"
QUESTIONS = (
    "Which radix is used for the exponent part of a floating point literal?",
    "How do I glue strings together?",
    "Can an anonymous function hold a loop?",
    "How big can a number be that I write down?",
)
STAGES = (
    "stage, stage_name, chunk_ids, scores, candidate_count, in_count, drop_reasons, index_name, "
    "index_version, model, top_k, score_kind, outcome, evidence"
)
PROMPTS = "prompt, template_name, sent_ids, budget_tokens, content_mode"


class Sent(Receiver):
    """Keeps each message as it came, to be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    def keep(self, request: Any, headers: dict[str, str], size: int) -> None:
        self.bodies.append(request.SerializeToString())
        super().keep(request, headers, size)


@contextmanager
def recording_to(store: Store, folder: Path) -> Iterator[str]:
    """Give an address to send to; what came is in *store* after the block."""
    sent = Sent()
    with http_receiver(sent) as address:
        yield address
    paths = []
    for number, body in enumerate(sent.bodies):
        paths.append(folder / f"sent-{number}.pb")
        paths[-1].write_bytes(body)
    assert load_files(store, [str(path) for path in paths]).rejected_count == 0


def ask(name: str, endpoint: str, questions: Sequence[str], model_url: str = "") -> list[str]:
    """Run an example's `app.py` on *questions*; the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "app.py", *questions],
        cwd=EXAMPLES / name,
        env=_variables(endpoint, model_url),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ragotel" not in done.stderr
    return done.stdout.splitlines()


@contextmanager
def serving(name: str, endpoint: str, model_url: str = "") -> Iterator[str]:
    """Run an example's `app:app` under uvicorn; its address. It ends as an operator ends it."""
    port = find_free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"],
        cwd=EXAMPLES / name,
        env=_variables(endpoint, model_url),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or _is_up(port), timeout_s=120)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        assert "Error" not in said, said


def post(address: str, **body: str) -> tuple[list[str], str]:
    """Ask over HTTP; the chunks of the answer and the id of the request."""
    request = urllib.request.Request(
        f"{address}/ask", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        chunks = list(iter(lambda: reply.read1(65536).decode(), ""))
        return chunks, reply.headers["x-request-id"]


def rows(store: Store, question: str) -> dict[str, Any]:
    """What the store holds of the request that asked *question*, in the order of starting."""
    (request,) = store.rows(
        "select request_id, user_id, answer, outcome, service_name from rag_requests "
        "where query = {question:String}",
        {"question": question},
    )
    given = {"request": request.pop("request_id")}
    where = "where request_id = {request:String}"
    stages = store.rows(
        f"select {STAGES} from rag_stages {where} and stage != 'request' "
        "order by started_at, stage_name",
        given,
    )
    for stage in stages:
        stage["scores"] = [None if one is None else round(one, 4) for one in stage["scores"]]
    prompts = store.rows(f"select {PROMPTS} from rag_prompts {where}", given)
    usage = store.rows(
        f"select input_tokens, output_tokens from rag_stages {where} and stage = 'generate'",
        given,
    )
    return {"request": request, "stages": stages, "prompts": prompts, "usage": usage}


def assert_recorded(store: Store, name: str, printed: Sequence[str], chat: Chat) -> None:
    """The rows are those of the golden file, the prompts those that the model got."""
    found = {question: rows(store, question) for question in QUESTIONS}
    sent = [found[question]["prompts"][0].pop("prompt") for question in QUESTIONS]
    assert sent == chat.prompts
    answers = [found[question]["request"].pop("answer") for question in QUESTIONS]
    assert answers == list(printed) == [extract(prompt) for prompt in sent]
    file = Path(__file__).parent / "golden" / f"{name}.json"
    if os.environ.get("RAGOTEL_RECORD"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    golden = json.loads(file.read_text("utf-8"))
    assert _near(found) == _near(golden)


def _near(value: Any) -> Any:
    """The same, with numbers that may differ in their last digits."""
    if isinstance(value, dict):
        return {key: _near(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_near(item) for item in value]
    return pytest.approx(value, abs=2e-4) if isinstance(value, float) else value


def verdicts(store: Store) -> dict[str, tuple[str, str, Any]]:
    """Question to bucket, loss stage and gold rank, by the labels and manifest of the examples."""
    data = EXAMPLES / "data"
    load_manifest(store, [str(data / "passages.jsonl")], Version(INDEX, VERSION))
    load_labels(store, [str(data / "labels.jsonl")])
    found = store.rows("select question, bucket, loss_stage, gold_rank from triage_requests")
    return {row["question"]: (row["bucket"], row["loss_stage"], row["gold_rank"]) for row in found}


def _is_up(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5):
            return True
    except OSError:
        return False


def _variables(endpoint: str, model_url: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RAGOTEL_", "OTEL_", "OPENAI_"))
    }
    if model_url:
        kept |= {"OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "small-1"}
    return {**kept, "RAGOTEL_ENDPOINT": endpoint, "NO_COLOR": "1"}
