"""Zero-code: `opentelemetry-instrument python app.py` records a service that knows no ragotel."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.instrumentation.auto_instrumentation")
pytest.importorskip("langchain_core")
pytest.importorskip("qdrant_client")
pytest.importorskip("openai")

from model_server import ANSWER

from receiver import Receiver, http_receiver

HERE = Path(__file__).parent
LAUNCHER = Path(sys.executable).parent / "opentelemetry-instrument"


def start(address: str, receiver_url: str | None, **variables: str) -> dict[str, str]:
    """Run the service under the launcher; gives what it printed, by the first word."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "RAGOTEL_"))}
    if receiver_url is not None:
        kept["RAGOTEL_ENDPOINT"] = f"{receiver_url}/v1/traces"
    done = subprocess.run(
        [str(LAUNCHER), "--traces_exporter", "console", "--metrics_exporter", "none",
         "--logs_exporter", "none", sys.executable, "zero_code_service.py", address],
        cwd=HERE,
        env={**kept, "OTEL_SERVICE_NAME": "shop", "PYTHONPATH": str(HERE), **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {"ALL": done.stdout + done.stderr} | dict(
        line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("ANS", "PROV"))
    )


def test_the_entry_point_has_a_name_of_its_own() -> None:
    """Switching off somebody else's `langchain` does not switch off ours."""
    ours = entry_points(group="opentelemetry_instrumentor", name="ragotel")
    assert [entry.value for entry in ours] == ["ragotel.instrument.zero_code:RagotelInstrumentor"]


@pytest.mark.parametrize("others", ["with", "without"])
def test_a_service_is_recorded_without_a_line_of_code(server: str, others: str) -> None:
    """One request with its stages, once each, whatever other instrumentations are there."""
    variables = {}
    if others == "without":
        names = {e.name for e in entry_points(group="opentelemetry_instrumentor")} - {"ragotel"}
        variables["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = ",".join(names)
    receiver = Receiver()
    with http_receiver(receiver) as url:
        printed = start(server, url, **variables)
        assert receiver.wait(lambda: len(receiver.spans) >= 4)
    assert printed["ANSWER"] == ANSWER
    assert printed["PROVIDER"] == "opentelemetry.sdk.trace"
    found = stages(receiver)
    assert sorted(found) == ["assemble", "generate", "request", "retrieve"]
    assert {resource["service.name"] for resource in receiver.resources} == {"shop"}
    generate = found["generate"]
    assert generate["gen_ai.usage.input_tokens"] == 70
    assert "rag.stage" not in printed["ALL"], "ours do not go through the application's provider"


def stages(receiver: Receiver) -> dict[str, dict[str, Any]]:
    every = [span for span in receiver.spans if "rag.stage" in span]
    assert len({span["rag.request.id"] for span in every}) == 1
    found = {span["rag.stage"]: span for span in every}
    assert len(found) == len(every)
    return found


def test_without_a_receiver_nothing_is_sent(server: str) -> None:
    """The service runs on as if nothing were there."""
    printed = start(server, None)
    assert printed["ANSWER"] == ANSWER
    assert "ragotel" not in printed["ALL"]


def test_switched_off_by_its_name(server: str) -> None:
    """The launcher's own variable switches ours off, and no other."""
    receiver = Receiver()
    with http_receiver(receiver) as url:
        start(server, url, OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="ragotel")
    assert receiver.spans == []
