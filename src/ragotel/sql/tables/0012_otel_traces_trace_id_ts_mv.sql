-- answers: when did this trace happen?
-- grain:   fills otel_traces_trace_id_ts at insert
-- reads:   otel_traces
create materialized view if not exists otel_traces_trace_id_ts_mv to otel_traces_trace_id_ts as
select
    TraceId,
    min(Timestamp) as Start,
    max(Timestamp) as End
from otel_traces
where TraceId != ''
group by TraceId
