"""Where a setting comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragotel.errors import ConfigurationError
from ragotel.settings import Settings, resolve_settings


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("OTEL_", "RAGOTEL_")):
            monkeypatch.delenv(name)


def test_defaults() -> None:
    """Nothing given: OTLP over HTTP to the local collector, gzip, 64 MiB of memory at most."""
    assert resolve_settings() == Settings()


def test_keyword_beats_own_variable_beats_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is keyword, RAGOTEL_*, OTEL_*."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "general")
    assert resolve_settings().service_name == "general"
    monkeypatch.setenv("RAGOTEL_SERVICE_NAME", "own")
    assert resolve_settings().service_name == "own"
    assert resolve_settings(service_name="keyword").service_name == "keyword"
    assert resolve_settings(service_name=None).service_name == "own"


@pytest.mark.parametrize(
    ("variables", "keywords", "endpoint"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, {}, "http://c:4318/v1/traces"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/base/"},
            {},
            "http://c:4318/base/v1/traces",
        ),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x"}, {}, "http://c/x"),
        (
            {
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x",
                "RAGOTEL_ENDPOINT": "http://own:1",
            },
            {},
            "http://own:1/v1/traces",
        ),
        ({}, {"endpoint": "https://c"}, "https://c/v1/traces"),
        ({}, {"endpoint": "https://c/v1/traces"}, "https://c/v1/traces"),
        ({}, {"endpoint": "c:4318"}, "http://c:4318/v1/traces"),
        ({}, {"protocol": "grpc"}, "http://localhost:4317"),
        ({}, {"protocol": "grpc", "endpoint": "c:4317"}, "c:4317"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:9"}, {"protocol": "grpc"}, "http://c:9"),
    ],
)
def test_endpoint(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    keywords: dict[str, str],
    endpoint: str,
) -> None:
    """A base gets the path of the traces, the signal's own variable is used as it stands."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert resolve_settings(**keywords).endpoint == endpoint


def test_variables_of_the_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter's usual variables are understood, the signal's own before the general ones."""
    for name, value in {
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20x,b=2",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "10000",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem",
        "OTEL_EXPORTER_OTLP_INSECURE": "TRUE",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=from-resource,team=a%2Cb",
        "OTEL_SDK_DISABLED": "true",
        "RAGOTEL_CONTENT_MODE": "OFF",
    }.items():
        monkeypatch.setenv(name, value)
    assert resolve_settings() == Settings(
        service_name="from-resource",
        resource={"team": "a,b"},
        headers={"authorization": "Bearer x", "b": "2"},
        compression="none",
        timeout_s=10.0,
        certificate="/ca.pem",
        insecure=True,
        disabled=True,
        content_mode="off",
    )


def test_an_address_of_http_is_not_spoken_to_in_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry's launcher sets its own protocol to grpc, whatever receiver ragotel has."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    for endpoint in ("http://desk:4318", "http://desk:9000/v1/traces"):
        assert resolve_settings(endpoint=endpoint).protocol == "http/protobuf"
        assert resolve_settings(endpoint=endpoint, protocol="grpc").protocol == "grpc"
    for endpoint in ("http://desk:4317", "http://desk:9000"):
        assert resolve_settings(endpoint=endpoint).protocol == "grpc"


def test_libraries_to_instrument_are_named_or_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """All by default; a variable names some or none."""
    assert resolve_settings().instrument is True
    for text, value in (("false", False), ("qdrant, openai", ("qdrant", "openai"))):
        monkeypatch.setenv("RAGOTEL_INSTRUMENT", text)
        assert resolve_settings().instrument == value
    assert resolve_settings(instrument=["chroma"]).instrument == ("chroma",)
    with pytest.raises(ConfigurationError, match="it can be True, False or a list of libraries"):
        resolve_settings(instrument="chroma")


def test_typing_error_in_a_variable_is_logged_and_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A service starts with a wrong variable; the log names it and what it can be."""
    monkeypatch.setenv("RAGOTEL_QUEUE_BYTES", "64MB")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    assert resolve_settings() == Settings()
    assert "RAGOTEL_QUEUE_BYTES='64MB'" in caplog.text
    assert "it can be 'http/protobuf' or 'grpc'" in caplog.text


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"protocl": "grpc"}, "no setting 'protocl'"),
        ({"protocol": "http"}, "it can be 'http/protobuf' or 'grpc'"),
        ({"timeout_s": "5"}, "it must be a number"),
        ({"timeout_s": float("nan")}, "it must be at least"),
        ({"batch_bytes": 10}, "it must be at least 4096"),
        ({"headers": "a=b"}, "it must map names to values"),
        ({"service_name": 5}, "it must be a text"),
    ],
)
def test_wrong_keyword_is_refused(keywords: dict[str, object], message: str) -> None:
    """A keyword that cannot work is told in one line, with what can."""
    with pytest.raises(ConfigurationError, match=message):
        resolve_settings(**keywords)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("RAGOTEL_CONTENT_MODE", "of"),
        ("RAGOTEL_CONTENT", "id"),
        ("RAGOTEL_CONTENT", "query=none"),
        ("RAGOTEL_CONTENT", "questions=off"),
    ],
)
def test_typing_error_in_a_rule_for_texts_lets_none_leave(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, text: str
) -> None:
    """Whoever sets such a variable wants less than everything to leave."""
    monkeypatch.setenv(variable, text)
    settings = resolve_settings()
    texts = ("query", "answer", "prompt", "chunks", "metadata")
    rules = {name: settings.content.get(name, settings.content_mode) for name in texts}
    assert rules == dict.fromkeys(texts, "off")
    assert f"sends no text, as {variable}={text!r}" in caplog.text


def test_spool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder, as text or path; nothing is written to a disk unless one is named."""
    assert resolve_settings().spool is None
    assert resolve_settings(spool=tmp_path).spool == str(tmp_path)
    monkeypatch.setenv("RAGOTEL_SPOOL", "/var/spool/ragotel")
    monkeypatch.setenv("RAGOTEL_SPOOL_MAX_BYTES", "1000000")
    settings = resolve_settings()
    assert (settings.spool, settings.spool_max_bytes) == ("/var/spool/ragotel", 1_000_000)


def test_resource_keyword_adds_to_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resource attributes of both places are sent, and a service name among them counts."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "a=1,b=1")
    settings = resolve_settings(resource={"b": "2", "service.name": "s"})
    assert (settings.resource, settings.service_name) == ({"a": "1", "b": "2"}, "s")
