-- answers: what is the loss called, where this stage moved a passage past the cut-off?
-- grain:   one function
-- reads:   nothing
-- A leg moves nothing past the cut-off of a list that is fused later: the fusion does.
create or replace function rag_moved_past as (stage, is_fused) ->
    multiIf(
        stage in ('retrieve', 'fuse'), if(is_fused, 'fused_beyond_cutoff', 'retrieved_beyond_cutoff'),
        stage = 'rerank', 'rerank_demoted',
        stage = 'blend', 'blend_demoted',
        stage = 'filter', 'filtered',
        'unknown'
    )
