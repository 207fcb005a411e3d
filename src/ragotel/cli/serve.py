"""Serve: starts the one process that receives OTLP, keeps it and answers SQL.

Pipeline: OTLP -> [cli: serve] -> server -> embedded store
"""

from __future__ import annotations

import click

from ragotel.cli.options import Whole, debug_option, json_option, store_option
from ragotel.cli.output import say

_PORT = Whole(0, 65_535)


@click.command("serve", short_help="Receive OTLP, keep it, answer SQL: one process.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--otlp-grpc-port", type=_PORT, default=4317, show_default=True, help="OTLP/gRPC; 0: any free."
)
@click.option(
    "--otlp-http-port", type=_PORT, default=4318, show_default=True, help="OTLP/HTTP; 0: any free."
)
@click.option(
    "--http-port",
    type=_PORT,
    default=8123,
    show_default=True,
    help="ClickHouse HTTP interface; 0: any free.",
)
@click.option(
    "--token",
    envvar="RAGOTEL_TOKEN",
    default="",
    help="Secret that clients must show; needed beyond 127.0.0.1. Default: RAGOTEL_TOKEN.",
)
@click.option(
    "--reader-token",
    envvar="RAGOTEL_READER_TOKEN",
    default="",
    help="Secret of those who may only read, over SQL. Default: RAGOTEL_READER_TOKEN.",
)
@click.option("--tls-cert", default="", metavar="FILE", help="Certificate chain, PEM.")
@click.option("--tls-key", default="", metavar="FILE", help="Its private key, PEM.")
@store_option
@json_option
@debug_option
def serve(
    host: str,
    otlp_grpc_port: int,
    otlp_http_port: int,
    http_port: int,
    token: str,
    reader_token: str,
    tls_cert: str,
    tls_key: str,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Receive OTLP (gRPC and HTTP), keep it in the embedded store, answer SQL over HTTP.

    A span is acknowledged when it is on the disk. SIGTERM or Ctrl-C ends the server after the last
    insert. While it runs, every command given the same --store reaches the store through it.

    With --tls-cert and --tls-key all three ports speak TLS; commands on this machine go through a
    port of their own on 127.0.0.1.
    """
    from ragotel.server.serving import Addresses, ServeOptions, serve
    from ragotel.store import parse_dsn

    def ready(addresses: Addresses) -> None:
        for line in _ready_lines(addresses, parse_dsn(dsn).path, bool(token), as_json):
            say(line)

    options = ServeOptions(
        dsn=parse_dsn(dsn).text,
        host=host,
        otlp_grpc_port=otlp_grpc_port,
        otlp_http_port=otlp_http_port,
        http_port=http_port,
        token=token,
        reader_token=reader_token,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    serve(options, ready)


def _ready_lines(addresses: object, folder: str, has_token: bool, as_json: bool) -> list[str]:
    import dataclasses
    import json

    facts: dict[str, str] = dataclasses.asdict(addresses)  # type: ignore[call-overload]
    if as_json:
        return [json.dumps({"ready": True, "store": folder, **facts})]
    return [
        f"ragotel serves {folder}{', token needed' if has_token else ''}; Ctrl-C ends it.",
        f"  OTLP/gRPC        {facts['otlp_grpc']}",
        f"  OTLP/HTTP        {facts['otlp_http']}/v1/traces",
        f"  ClickHouse HTTP  {facts['clickhouse_http']}",
        "ready " + " ".join(f"{name}={address}" for name, address in facts.items()),
    ]


def register(group: click.Group) -> None:
    """Add `serve` to *group*."""
    group.add_command(serve)
