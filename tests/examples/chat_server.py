"""A server on this machine that speaks OpenAI's chat API and answers from the prompt it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from offline import extract

MODEL = "small-1"
USAGE = {"prompt_tokens": 301, "completion_tokens": 17, "total_tokens": 318}


class Chat:
    """What was asked so far: the text of each call's last message."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.url = ""

    def reply(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        content = asked["messages"][-1]["content"]
        prompt = content if isinstance(content, str) else content[0]["text"]
        self.prompts.append(prompt)
        answer = extract(prompt)
        head: dict[str, Any] = {"id": "c1", "created": 1, "model": MODEL}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": answer}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return [{**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}]
        head["object"] = "chat.completion.chunk"
        first, *others = answer.split(" ")
        deltas = [{"content": word} for word in (first, *(f" {word}" for word in others))]
        choices = [[{"index": 0, "delta": delta}] for delta in deltas]
        choices.append([{"index": 0, "delta": {}, "finish_reason": "stop"}])  # type: ignore[list-item]
        chunks = [{**head, "choices": one} for one in choices]
        return [*chunks, {**head, "choices": [], "usage": USAGE}]


@contextmanager
def chat_server() -> Iterator[Chat]:
    """Serve within a block."""
    chat = Chat()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            replies = chat.reply(asked)
            if asked.get("stream"):
                events = [json.dumps(reply) for reply in replies] + ["[DONE]"]
                self._send("text/event-stream", "".join(f"data: {one}\n\n" for one in events))
            else:
                self._send("application/json", json.dumps(replies[0]))

        def _send(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
