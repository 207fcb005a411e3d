"""Server: `ragotel serve`, OTLP receivers and ClickHouse HTTP interface over one embedded store.

Pipeline: OTLP -> [receivers -> writer] -> otel_traces -> views -> [ClickHouse interface] -> clients
"""
