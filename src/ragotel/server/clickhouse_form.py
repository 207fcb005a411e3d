"""ClickHouse form: a statement and its parameters sent as form fields instead of in the URL.

Pipeline: clickhouse-connect (parameters too long for a URL) -> [form] -> ClickHouse interface
"""

from __future__ import annotations

from email import message_from_bytes
from email.message import Message

FORM = "multipart/form-data"


def is_form(content_type: str) -> bool:
    """Whether a body of *content_type* is a form whose fields stand for URL parameters."""
    return content_type.partition(";")[0].strip().lower() == FORM


def read_form(content_type: str, body: bytes) -> dict[str, str]:
    """The fields of the form by name; what is no form has none."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = message_from_bytes(head + body)
    if not message.is_multipart():
        return {}
    return {name: _text(part) for part in message.get_payload() if (name := _name(part))}


def _name(part: Message | str) -> str:
    if isinstance(part, str):
        return ""
    name = part.get_param("name", header="content-disposition")
    return name if isinstance(name, str) else ""


def _text(part: Message | str) -> str:
    value = part if isinstance(part, str) else part.get_payload(decode=True)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
