"""A statement with long parameters, as clickhouse-connect sends it: in form fields."""

from __future__ import annotations

from urllib3.filepost import encode_multipart_formdata

from ragotel.server.clickhouse_form import is_form, read_form


def test_fields_are_read_as_the_client_wrote_them() -> None:
    """Quotes, line breaks, semicolons and other scripts in a value come through unchanged."""
    fields = {
        "query": "select {ids:Array(String)}; -- \u00fc",
        "param_ids": "['a;b','c\\'d','line\\n','\u4e2d']",
        "param_empty": "",
    }
    body, content_type = encode_multipart_formdata(fields)
    assert is_form(content_type)
    assert read_form(content_type, body) == fields


def test_what_is_no_form_has_no_fields() -> None:
    """A body without the boundary that its type names gives no fields."""
    assert not is_form("text/plain; charset=UTF-8")
    assert read_form("multipart/form-data; boundary=x", b"select 1") == {}
