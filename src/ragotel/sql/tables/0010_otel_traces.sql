-- answers: what did the services send?
-- grain:   one row per span, as the OpenTelemetry Collector's ClickHouse exporter writes it
-- reads:   nothing
-- Columns are exactly the exporter's. Partitions are months, not its days: an import of two years of
-- history in one batch must not run into the limit of 100 partitions per insert.
create table if not exists otel_traces
(
    Timestamp          DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    TraceId            String codec(ZSTD(1)),
    SpanId             String codec(ZSTD(1)),
    ParentSpanId       String codec(ZSTD(1)),
    TraceState         String codec(ZSTD(1)),
    SpanName           LowCardinality(String) codec(ZSTD(1)),
    SpanKind           LowCardinality(String) codec(ZSTD(1)),
    ServiceName        LowCardinality(String) codec(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) codec(ZSTD(1)),
    ScopeName          String codec(ZSTD(1)),
    ScopeVersion       String codec(ZSTD(1)),
    SpanAttributes     Map(LowCardinality(String), String) codec(ZSTD(1)),
    Duration           UInt64 codec(ZSTD(1)),
    StatusCode         LowCardinality(String) codec(ZSTD(1)),
    StatusMessage      String codec(ZSTD(1)),
    Events             Nested(
        Timestamp  DateTime64(9, 'UTC'),
        Name       LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) codec(ZSTD(1)),
    Links              Nested(
        TraceId    String,
        SpanId     String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) codec(ZSTD(1)),
    index idx_trace_id TraceId type bloom_filter(0.001) granularity 1
)
engine = MergeTree
partition by toYYYYMM(Timestamp)
order by (ServiceName, SpanName, toDateTime(Timestamp))
settings ttl_only_drop_parts = 1
