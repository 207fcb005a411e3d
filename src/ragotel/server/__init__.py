"""Server: `ragotel serve`, the OTLP receivers and the ClickHouse HTTP interface over one embedded store.

Pipeline: OTLP -> [server: receivers -> writer] -> otel_traces -> views -> [server: interface] -> clients
"""
