-- answers: which limit holds for which service, built in or set?
-- grain:   one row per limit × service that has one of its own ('' is every other service)
-- reads:   rag_limits
-- max_share: 0 to 1, above it is an alert; null is no limit. max_deviation: how far above its baseline a share may
-- be (below it, for passed), or how many times the usual chunks_deleted may be. min_sample: with fewer nothing is
-- judged. A corpus gap above 5 % is an alert always: it can be made stricter, not laxer.
create or replace view rag_limits_in_force as
with
    built_in as (
        select
            limits.1 as limit_name,
            limits.2 as max_share,
            limits.3 as max_deviation,
            limits.4 as min_sample
        from (
            select arrayJoin(
                cast(
                    [
                        ('corpus_gap', 0.05, 0.02, 1),
                        ('retrieval_miss', null, 0.02, 30),
                        ('context_problem', null, 0.02, 30),
                        ('generation_error', null, 0.02, 30),
                        ('unknown', null, 0.02, 30),
                        ('not_answerable', null, null, 30),
                        ('ungraded', null, null, 30),
                        ('passed', null, null, 30),
                        ('failed_stage', 0.01, null, 20),
                        ('reranker_fallback', null, null, 20),
                        ('docs_listed_drop', 0.05, null, 1),
                        ('mean_chars_drop', 0.1, null, 1),
                        ('docs_empty', 0.01, null, 1),
                        ('chunks_deleted', null, 3, 20),
                        ('spans_lost', 0, null, 1)
                    ],
                    'Array(Tuple(String, Nullable(Float64), Nullable(Float64), UInt64))'
                )
            ) as limits
        )
    ),
    written as (
        select limit_name, service_name, max_share, max_deviation, min_sample, written_at
        from rag_limits final
        where coalesce(max_share, max_deviation, toFloat64(min_sample)) is not null
    ),
    services as (
        select limit_name, service_name
        from written
        where service_name != ''
        union all
        select limit_name, ''
        from built_in
    )
select
    built_in.limit_name as limit_name,
    services.service_name as service_name,
    if(
        built_in.limit_name = 'corpus_gap',
        least(coalesce(own.max_share, general.max_share, built_in.max_share), built_in.max_share),
        coalesce(own.max_share, general.max_share, built_in.max_share)
    )::Nullable(Float64) as max_share,
    coalesce(own.max_deviation, general.max_deviation, built_in.max_deviation)::Nullable(Float64) as max_deviation,
    coalesce(own.min_sample, general.min_sample, built_in.min_sample)::UInt64 as min_sample,
    (own.limit_name = '' and general.limit_name = '')::Bool as is_built_in,
    if(is_built_in, null, greatest(own.written_at, general.written_at))::Nullable(DateTime64(6, 'UTC')) as written_at
from built_in
inner join services on services.limit_name = built_in.limit_name
left join written as own
    on own.limit_name = built_in.limit_name and own.service_name = services.service_name
left join (
    select *
    from written
    where service_name = ''
) as general on general.limit_name = built_in.limit_name
settings join_use_nulls = 0
