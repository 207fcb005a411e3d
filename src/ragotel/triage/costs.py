"""Costs: what a query costs in input tokens, and what it would cost at another k.

Pipeline: dist_costs -> [triage] -> cli | server

Prices are the caller's: none is known here. The what-if adds or takes away passages of the size
that was recorded; what a longer prompt does to the answers it cannot say.
"""

from __future__ import annotations

from ragotel.triage.question import Question
from ragotel.triage.verdicts import Slice, conditions_by_day


def costs_question(
    part: Slice,
    *,
    usd_per_million: float,
    template: str | None = None,
    k: int | None = None,
    queries_per_day: float | None = None,
) -> Question:
    """Tokens and USD per query and day, one row per service, template, version, run.

    *k* adds what the same query would take with k passages; null where the tokens of a passage are
    not known: neither recorded, nor to be had from prompts with more and with fewer, nor estimated.
    Without *queries_per_day* the recorded requests per day count.
    """
    where = conditions_by_day(part)
    where.equal("template_name", template)
    parameters = {**where.parameters, "usd": usd_per_million}
    at_k, per_day = "cast(null, 'Nullable(UInt32)')", "cast(null, 'Nullable(Float64)')"
    if k is not None:
        parameters["k"], at_k = k, "{k:UInt32}"
    if queries_per_day is not None:
        parameters["per_day"], per_day = queries_per_day, "{per_day:Float64}"
    sql = _SQL.replace("<where>", str(where)).replace("<k>", at_k).replace("<per_day>", per_day)
    return Question(sql, parameters)


_SQL = """\
with
    grouped as (
        select
            service_name, template_name, template_version, run_id,
            sum(requests) as all_requests,
            sum(measured_requests) as measured,
            uniqExact(day) as days,
            groupUniqArrayArray(tokens_sources) as sources,
            sum(mean_input_tokens * measured_requests) / nullIf(measured, 0) as input_tokens,
            sum(mean_passages * measured_requests) / nullIf(measured, 0) as passages,
            sumIf(tokens_per_passage * measured_requests, tokens_per_passage is not null)
                / nullIf(sumIf(measured_requests, tokens_per_passage is not null), 0) as own_slope,
            maxIf(tokens_per_passage_source, tokens_per_passage is not null) as own_source
        from dist_costs
        <where>
        group by service_name, template_name, template_version, run_id
    ),
    beside as (
        select
            *,
            varPop(ifNull(passages, 0))
                over (partition by template_name, template_version) as spread,
            covarPop(ifNull(passages, 0), ifNull(input_tokens, 0))
                over (partition by template_name, template_version) as covariance
        from grouped
        where input_tokens is not null and passages is not null
    ),
    sloped as (
        select
            *,
            multiIf(
                own_slope is not null and own_source != 'estimated', own_source,
                spread > 0 and covariance > 0, 'compared',
                own_slope is not null, own_source,
                ''
            ) as source,
            multiIf(source = '', null, source = 'compared', covariance / spread, own_slope)
                as tokens_per_passage
        from beside
    )
select
    service_name, template_name, template_version, run_id,
    all_requests as requests,
    days,
    arraySort(sources) as tokens_sources,
    passages as mean_passages,
    input_tokens as mean_input_tokens,
    tokens_per_passage,
    source as tokens_per_passage_source,
    input_tokens - passages * tokens_per_passage as fixed_tokens,
    coalesce(<per_day>, all_requests / days) as queries_per_day,
    input_tokens * {usd:Float64} / 1e6 as usd_per_query,
    usd_per_query * queries_per_day as usd_per_day,
    <k> as k,
    input_tokens + (<k> - passages) * tokens_per_passage as input_tokens_at_k,
    input_tokens_at_k * {usd:Float64} / 1e6 as usd_per_query_at_k,
    usd_per_query_at_k * queries_per_day as usd_per_day_at_k
from sloped
order by service_name, template_name, template_version, run_id"""
