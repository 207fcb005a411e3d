"""A server on this machine that speaks the APIs of model services and of search engines."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from corpus import QUESTION, TEXTS, nearest, overlap

ANSWER = "You have 21 calendar days."
WORDS = [f"{word} " for word in ANSWER.split(" ")[:-1]] + [ANSWER.split(" ")[-1]]


def chat(asked: dict[str, Any]) -> Any:
    head = {"id": "c1", "created": 1, "model": "fake-1-2026"}
    usage = {"prompt_tokens": 70, "completion_tokens": 6, "total_tokens": 76}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": ANSWER}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**head, "object": "chat.completion.chunk"}
    events: list[Any] = [
        {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": word}}]}
        for word in WORDS
    ]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if (asked.get("stream_options") or {}).get("include_usage"):
        events.append({**chunk, "choices": [], "usage": usage})
    return [("", event) for event in events] + [("", "[DONE]")]


def response(asked: dict[str, Any]) -> Any:
    part = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {
        "id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]
    }  # fmt: skip
    whole = {
        "id": "r1", "object": "response", "created_at": 1, "model": "fake-1-2026",
        "status": "completed", "output": [item], "parallel_tool_calls": False,
        "tool_choice": "auto", "tools": [], "usage": {
            "input_tokens": 71, "output_tokens": 6, "total_tokens": 77,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip
    if not asked.get("stream"):
        return whole
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    where = {"item_id": "m1", "output_index": 0, "content_index": 0, "logprobs": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    events += [{"type": "response.output_text.delta", "delta": word, **where} for word in WORDS]
    events.append({"type": "response.completed", "response": whole})
    return [
        (event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)
    ]


def message(asked: dict[str, Any]) -> Any:
    usage = {"input_tokens": 60, "cache_read_input_tokens": 12, "output_tokens": 6}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-fake-1"}
    if not asked.get("stream"):
        content = [{"type": "text", "text": ANSWER}]
        return {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
    begun = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    block = {"type": "text", "text": ""}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    events += [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ]
    events += [
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 6},
        },
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


def rerank(asked: dict[str, Any]) -> Any:
    texts = [one if isinstance(one, str) else one["text"] for one in asked["documents"]]
    scored = [(place, overlap(asked["query"], text)) for place, text in enumerate(texts)]
    best = sorted(scored, key=lambda row: -row[1])[: asked.get("top_n") or asked.get("top_k")]
    rows = [{"index": place, "relevance_score": score, "score": score} for place, score in best]
    tokens = {"total_tokens": 9}
    voyage = {"object": "list", "data": rows, "model": asked["model"], "usage": tokens}
    tokens["rerank_units"] = 1
    return {"id": "k1", "results": rows, "meta": {"billed_units": {"search_units": 1}}, **voyage}


def vector_search(asked: dict[str, Any]) -> Any:
    text = [{"type": "text", "text": "Hardware can be returned within 21 calendar days."}]
    hit = {"file_id": "f1", "filename": "returns.md", "score": 0.8, "attributes": {}}
    return {
        "object": "vector_store.search_results.page", "search_query": [asked["query"]],
        "data": [{**hit, "content": text}], "has_more": False, "next_page": None,
    }  # fmt: skip


def hits(asked: dict[str, Any]) -> Any:
    """Elasticsearch and OpenSearch."""
    found = nearest(QUESTION, asked.get("size", 10))
    listed = [
        {"_index": "docs", "_id": key, "_score": score, "_source": {"text": TEXTS[key]}}
        for key, score in found
    ]
    total = {"value": len(listed), "relation": "eq"}
    return {
        "took": 1, "timed_out": False, "_shards": {"total": 1, "successful": 1, "failed": 0},
        "hits": {"total": total, "max_score": found[0][1] if found else None, "hits": listed},
    }  # fmt: skip


def matches(asked: dict[str, Any]) -> Any:
    """Pinecone's vectors."""
    found = nearest(QUESTION, asked["topK"])
    listed = [{"id": k, "score": s, "metadata": {"chunk_text": TEXTS[k]}} for k, s in found]
    return {"matches": listed, "namespace": "", "usage": {"readUnits": 1}}


def records(asked: dict[str, Any]) -> Any:
    """Pinecone's records."""
    found = nearest(asked["query"]["inputs"]["text"], asked["query"]["top_k"])
    listed = [{"_id": k, "_score": s, "fields": {"chunk_text": TEXTS[k]}} for k, s in found]
    return {"result": {"hits": listed}, "usage": {"read_units": 1}}


_ROUTES = {
    "/_search": hits,
    "/query": matches,
    "/namespaces/shop/search": records,
    "/chat/completions": chat,
    "/responses": response,
    "/messages": message,
    "/rerank": rerank,
    "/search": vector_search,
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.split("?")[0]
        route = next((made for end, made in _ROUTES.items() if path.endswith(end)), None)
        if route is None or asked.get("model") == "broken":
            self._send(400, "application/json", json.dumps({"error": {"message": "no"}}))
            return
        if asked.get("model") == "hanging":
            self.server.released.wait(30)  # type: ignore[attr-defined]
        answer = route(asked)
        if isinstance(answer, dict):
            self._send(200, "application/json", json.dumps(answer))
        else:
            lines = [
                f"{f'event: {name}' + chr(10) if name else ''}data: "
                f"{event if isinstance(event, str) else json.dumps(event)}\n\n"
                for name, event in answer
            ]
            self._send(200, "text/event-stream", "".join(lines))

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        return


@contextmanager
def serving() -> Iterator[str]:
    """Serve within a block; gives the address, without a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.released.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()
        thread.join()
