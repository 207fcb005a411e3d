"""OTLP JSON: parsed JSON of an ExportTraceServiceRequest or TracesData to rows, span by span.

Pipeline: wire -> [json] -> rows -> otel_traces
Wider than the specification where captures in the wild are: ids in hex or base64, enums as numbers
or names, keys in lowerCamelCase or snake_case, 64-bit numbers as strings or numbers; unknown keys
are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from ragotel.store.otlp_rows import (
    SPAN_KINDS,
    STATUS_CODES,
    Attributes,
    Decoded,
    Event,
    Link,
    Origin,
    OtlpError,
    SpanRejectedError,
    SpanRow,
    checked_times,
    clamped_time,
)
from ragotel.store.otlp_values import MAX_DEPTH, value_text
from ragotel.text import repair

_HEX = re.compile(r"[0-9a-fA-F]*\Z")
_KIND_NAMES = {f"SPAN_KIND_{name.upper()}": name for name in SPAN_KINDS}
_STATUS_NAMES = {f"STATUS_CODE_{name.upper()}": name for name in STATUS_CODES}


def parse_json(body: bytes) -> Any:
    """Parse *body*; invalid UTF-8 is repaired, for one bad byte must not cost a batch.

    Raises:
        OtlpError: It is not JSON; the message says where.
    """
    try:
        return json.loads(body.decode("utf-8-sig", "replace"), parse_int=_parse_int)
    except RecursionError as error:
        raise OtlpError("the body is nested too deep") from error
    except ValueError as error:
        raise OtlpError(f"the body is not JSON: {error}") from error


def decode_json(body: bytes) -> Decoded:
    """All spans of *body*; a span that is malformed in itself is counted in `reasons`.

    Raises:
        OtlpError: It is not JSON, or not an OTLP trace message.
    """
    return decode_parsed(parse_json(body))


def decode_parsed(message: Any) -> Decoded:
    """The same for JSON that is parsed already: one message, or a list of them."""
    decoded = Decoded()
    messages = message if isinstance(message, list) and message else [message]
    for one in messages:
        if not isinstance(one, dict):
            raise OtlpError("the body is JSON, but not an object with resourceSpans")
        if one and not {"resourceSpans", "resource_spans", "partialSuccess"} & one.keys():
            raise OtlpError(f"no resourceSpans, but {', '.join(map(_shown, sorted(one)[:3]))}")
        for resource_spans in _frames(one, "resourceSpans", "resource_spans"):
            _resource_spans(resource_spans, decoded)
    return decoded


def _shown(key: str) -> str:
    return repr(key if len(key) <= 40 else f"{key[:40]}…")


def _parse_int(digits: str) -> int | str:
    # Python refuses to read numbers of thousands of digits; they stay what they are: text.
    return int(digits) if len(digits) < 40 else digits


def _resource_spans(message: Any, decoded: Decoded) -> None:
    refusal, resource = "", {}
    try:
        resource = _attributes(_child(message, "resource"))
    except SpanRejectedError as error:
        refusal = f"resource: {error}"
    scopes = _frames(message, "scopeSpans", "scope_spans")
    for scope_spans in scopes or _frames(message, "instrumentationLibrarySpans"):
        scope = _child(scope_spans, "scope") or _child(scope_spans, "instrumentationLibrary")
        origin = Origin(
            resource.get("service.name", ""),
            resource,
            _text(scope, "name"),
            _text(scope, "version"),
        )
        for span in _listed(scope_spans, "spans", must=True):
            if refusal:
                decoded.reasons[refusal] += 1
                continue
            try:
                decoded.rows.append(_span(span, origin))
            except SpanRejectedError as error:
                decoded.reasons[str(error)] += 1


def _span(span: Any, origin: Origin) -> SpanRow:
    if not isinstance(span, dict):
        raise SpanRejectedError(f"a span that is no object but {type(span).__name__}")
    status = _child(span, "status")
    start_ns, duration_ns = checked_times(
        _integer(_pick(span, "startTimeUnixNano", "start_time_unix_nano"), "start time"),
        _integer(_pick(span, "endTimeUnixNano", "end_time_unix_nano"), "end time"),
    )
    return SpanRow(
        start_ns=start_ns,
        duration_ns=duration_ns,
        trace_id=_id(_pick(span, "traceId", "trace_id"), 16, "trace id"),
        span_id=_id(_pick(span, "spanId", "span_id"), 8, "span id"),
        parent_span_id=_id(
            _pick(span, "parentSpanId", "parent_span_id"), 8, "parent span id", may_lack=True
        ),
        trace_state=_text(span, "traceState", "trace_state"),
        name=_text(span, "name"),
        kind=_enum(span.get("kind"), SPAN_KINDS, _KIND_NAMES),
        origin=origin,
        attributes=_attributes(span),
        status_code=_enum(status.get("code"), STATUS_CODES, _STATUS_NAMES),
        status_message=_text(status, "message"),
        events=tuple(_event(event) for event in _listed(span, "events") if isinstance(event, dict)),
        links=tuple(_link(link) for link in _listed(span, "links") if isinstance(link, dict)),
    )


def _event(event: dict[str, Any]) -> Event:
    at_ns = _integer(_pick(event, "timeUnixNano", "time_unix_nano"), "event time")
    return Event(clamped_time(at_ns), _text(event, "name"), _attributes(event))


def _link(link: dict[str, Any]) -> Link:
    return Link(
        _id(_pick(link, "traceId", "trace_id"), 16, "link's trace id", may_lack=True),
        _id(_pick(link, "spanId", "span_id"), 8, "link's span id", may_lack=True),
        _text(link, "traceState", "trace_state"),
        _attributes(link),
    )


def _id(value: Any, size: int, what: str, *, may_lack: bool = False) -> str:
    text = value if isinstance(value, str) else ""
    if may_lack and not text.strip("0"):
        return ""
    if len(text) == 2 * size and _HEX.match(text) and text.strip("0"):
        return text.lower()
    # Protobuf's own JSON printer writes bytes as base64; the length tells which it is.
    if len(text) == 4 * ((size + 2) // 3):
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) == size:
            return raw.hex() if any(raw) else _lacking(what)
    if not text.strip("0"):
        return _lacking(what)
    raise SpanRejectedError(f"{what} of {len(text)} characters is not {2 * size} hex digits")


def _lacking(what: str) -> str:
    raise SpanRejectedError(f"no {what}")


def _attributes(holder: Any) -> Attributes:
    """Of the same key twice the last one counts, as in the exporter; no pairs are passed over."""
    return {
        _key(pair): value_text(_any_value(pair.get("value"), 0))
        for pair in _listed(holder, "attributes")
        if isinstance(pair, dict)
    }


def _key(pair: dict[str, Any]) -> str:
    # An empty key is left out by protobuf's JSON printer.
    return repair(str(pair.get("key", "")))


def _any_value(value: Any, depth: int) -> Any:
    """The Python value of an AnyValue; junk in its place stays readable as it stands."""
    if depth > MAX_DEPTH:
        raise SpanRejectedError(f"attribute nested deeper than {MAX_DEPTH} levels")
    if not isinstance(value, dict):
        return value
    for key, item in value.items():
        kind = key.replace("_v", "V")
        if kind == "stringValue":
            return item if isinstance(item, str) else value_text(item)
        if kind in ("boolValue", "intValue", "doubleValue"):
            return _scalar(kind, item)
        if kind == "arrayValue":
            return [_any_value(one, depth + 1) for one in _listed(item, "values")]
        if kind == "kvlistValue":
            return _pairs(item, depth)
        if kind == "bytesValue":
            return item
    return None


def _pairs(kvlist: Any, depth: int) -> dict[str, Any]:
    return {
        _key(pair): _any_value(pair.get("value"), depth + 1)
        for pair in _listed(kvlist, "values")
        if isinstance(pair, dict)
    }


def _scalar(kind: str, item: Any) -> Any:
    if kind == "boolValue":
        return {"true": True, "false": False}.get(item, item) if isinstance(item, str) else item
    try:
        return int(item) if kind == "intValue" else float(item)
    except (TypeError, ValueError, OverflowError):
        return item


def _enum(value: Any, names: tuple[str, ...], by_name: dict[str, str]) -> str:
    if isinstance(value, str) and value and not value.isdecimal():
        return by_name.get(value, "")
    text = str(value or 0)
    number = int(text) if text.isdecimal() and len(text) < 10 else -1
    return names[number] if 0 <= number < len(names) else ""


def _integer(value: Any, what: str) -> int:
    if value is None or value == "":
        return 0
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise SpanRejectedError(f"{what} is no number") from None


def _pick(holder: dict[str, Any], *keys: str) -> Any:
    return next((holder[key] for key in keys if key in holder), None)


def _child(holder: Any, key: str) -> dict[str, Any]:
    child = holder.get(key) if isinstance(holder, dict) else None
    return child if isinstance(child, dict) else {}


def _listed(holder: Any, *keys: str, must: bool = False) -> list[Any]:
    """The list under the first of *keys*; where one *must* stand, anything but null is refused."""
    found = _pick(holder, *keys) if isinstance(holder, dict) else None
    if must and not isinstance(found, (list, type(None))):
        raise OtlpError(f"{keys[0]} is no list but {type(found).__name__}")
    return found if isinstance(found, list) else []


def _frames(holder: dict[str, Any], *keys: str) -> list[dict[str, Any]]:
    """The objects around spans: one that is none may have held any number of them."""
    found = _listed(holder, *keys, must=True)
    for one in found:
        if not isinstance(one, dict):
            raise OtlpError(f"{keys[0]} has an element that is no object but {type(one).__name__}")
    return found


def _text(holder: dict[str, Any], *keys: str) -> str:
    value = _pick(holder, *keys)
    return repair(value) if isinstance(value, str) else value_text(value)
