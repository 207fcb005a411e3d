-- answers: when did this trace happen?
-- grain:   one row per trace and insert
-- reads:   nothing
create table if not exists otel_traces_trace_id_ts
(
    TraceId String codec(ZSTD(1)),
    Start   DateTime('UTC') codec(Delta, ZSTD(1)),
    End     DateTime('UTC') codec(Delta, ZSTD(1)),
    index idx_trace_id TraceId type bloom_filter(0.01) granularity 1
)
engine = MergeTree
partition by toYYYYMM(Start)
order by (TraceId, Start)
settings ttl_only_drop_parts = 1
