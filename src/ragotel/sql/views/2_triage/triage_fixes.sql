-- answers: who owns this verdict, which fixes work on it, and which cannot?
-- grain:   one row per bucket × loss_stage × attribution that a verdict can have
-- reads:   nothing
-- Join it on the three columns. A fix that cannot work is a good fix of another factor: each stands under
-- fixes_that_work of some other row.
create or replace view triage_fixes as
select
    fix.1 as bucket,
    arrayJoin(fix.2) as loss_stage,
    arrayJoin(fix.3) as attribution,
    fix.4 as owner,
    fix.5 as fixes_that_work,
    fix.6 as fixes_that_cannot
from (
    select arrayJoin(
        [
            (
                'corpus_gap',
                ['not_indexed'],
                ['ingest'],
                'ingest',
                ['find the ingest run that lost it, and what else that run lost', 'list the source in the crawl', 'mend the parser', 'mend the chunker', 'undo the deletion and ingest the document again'],
                ['add a reranker', 'add hybrid search', 'raise k', 'change the embedding model', 'edit the prompt', 'use a larger model']
            ),
            (
                'retrieval_miss',
                ['not_retrieved_by_any_leg'],
                ['retrieval'],
                'retrieval',
                ['add a lexical or dense leg', 'rewrite the query in the words of the documents', 'change the embedding model', 'read the chunk: does it answer without its neighbour, or did the chunker split it?', 'raise k of the leg, if deep_rank is near'],
                ['add a reranker over the same list', 'edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['retrieved_beyond_cutoff'],
                ['retrieval'],
                'retrieval',
                ['add a reranker over a list that reaches deep_rank', 'add hybrid search', 'raise k, and measure what the added passages cost'],
                ['edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['fusion_limit'],
                ['retrieval'],
                'retrieval',
                ['raise the limit of the fusion', 'fuse by rank, not by weighted scores'],
                ['rerank deeper than the fusion hands over', 'raise k of a leg', 'edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['fused_beyond_cutoff'],
                ['retrieval'],
                'retrieval',
                ['add a reranker over the fused list, or show it the part that answers', 'fuse by rank, not by weighted scores', 'improve the leg that ranks it low'],
                ['raise the limit of the fusion', 'edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['filtered'],
                ['retrieval'],
                'access and filters',
                ['correct the rule that took it out (drop_reason names it)', 'filter inside the query, so that k is filled with what may be read'],
                ['add a reranker', 'add hybrid search', 'edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['rerank_demoted'],
                ['retrieval'],
                'retrieval',
                ['let the reranker read the whole passage, not only its first window', 'change the reranker, or blend its rank with that of the search', 'keep more after reranking'],
                ['add hybrid search', 'raise the limit of the fusion', 'edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['blend_demoted'],
                ['retrieval'],
                'retrieval',
                ['lower the weight that moved it down', 'blend before reranking'],
                ['add a reranker', 'add hybrid search', 'edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'retrieval_miss',
                ['unknown', 'assemble', 'none'],
                ['retrieval'],
                'retrieval',
                ['record the lists of every leg and stage, then read the loss stage', 'probe how deep it ranks'],
                ['edit the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'context_problem',
                ['assemble', 'unknown', 'none', 'retrieved_beyond_cutoff', 'fused_beyond_cutoff', 'rerank_demoted', 'blend_demoted', 'filtered', 'fusion_limit', 'not_retrieved_by_any_leg'],
                ['prompt-assembly'],
                'prompt assembly',
                ['rerank before the budget cuts, not after', 'trim long passages, so that more of them fit', 'raise the token budget', 'correct the rule that removes duplicates, if it kept the other one'],
                ['tune the retriever', 'change the embedding model', 'add hybrid search', 'edit the instructions of the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'context_problem',
                ['assemble', 'unknown', 'none', 'retrieved_beyond_cutoff', 'fused_beyond_cutoff', 'rerank_demoted', 'blend_demoted', 'filtered', 'fusion_limit', 'not_retrieved_by_any_leg'],
                ['chunking'],
                'chunking',
                ['keep the claim and what it is about in one chunk (overlap, tables with their header)', 'send the neighbours of a chunk with it', 'label the chunk that holds the claim, if another one does'],
                ['raise the token budget', 'add a reranker', 'tune the retriever', 'edit the instructions of the prompt', 'use a larger model']
            ),
            (
                'context_problem',
                ['assemble', 'unknown', 'none', 'retrieved_beyond_cutoff', 'fused_beyond_cutoff', 'rerank_demoted', 'blend_demoted', 'filtered', 'fusion_limit', 'not_retrieved_by_any_leg'],
                ['unknown'],
                'prompt assembly or chunking',
                ['record the texts of the chunks, which tell trimming from splitting'],
                ['tune the retriever', 'edit the instructions of the prompt', 'use a larger model', 'ingest the document again']
            ),
            (
                'generation_error',
                ['none', 'unknown', 'assemble', 'retrieved_beyond_cutoff', 'fused_beyond_cutoff', 'rerank_demoted', 'blend_demoted', 'filtered', 'fusion_limit', 'not_retrieved_by_any_leg'],
                ['generation'],
                'prompt and model',
                ['ablate: right with the gold passage alone is distraction, wrong is misuse', 'remove superseded and contradicting documents', 'cut the list where its scores fall, or lower k', 'say in the prompt which passage wins where two disagree', 'require a citation for each claim', 'use a larger model, for misuse'],
                ['add a reranker', 'add hybrid search', 'raise k', 'change the embedding model', 'ingest the document again']
            ),
            (
                'unknown',
                ['unknown', 'none', 'assemble', 'not_indexed', 'not_retrieved_by_any_leg', 'retrieved_beyond_cutoff', 'fusion_limit', 'fused_beyond_cutoff', 'filtered', 'rerank_demoted', 'blend_demoted'],
                ['unknown'],
                'instrumentation',
                ['record what `missing` names; `ragotel doctor` says which line of code does it', 'complete the label, where `missing` is gold or claim'],
                ['any fix of a stage: which stage is at fault is not known']
            ),
            (
                'ungraded',
                ['none', 'unknown', 'assemble', 'retrieved_beyond_cutoff', 'fused_beyond_cutoff', 'rerank_demoted', 'blend_demoted', 'filtered', 'fusion_limit', 'not_retrieved_by_any_leg'],
                ['none'],
                'evaluation',
                ['grade the answer'],
                ['any fix of search or prompt: the evidence stood in the prompt']
            ),
            (
                'not_answerable',
                ['none'],
                ['none'],
                'content',
                ['write the document, if the question should have an answer', 'let the model abstain'],
                ['add a reranker', 'raise k', 'change the embedding model', 'use a larger model']
            ),
            (
                'passed',
                ['none', 'unknown', 'assemble', 'retrieved_beyond_cutoff', 'fused_beyond_cutoff', 'rerank_demoted', 'blend_demoted', 'filtered', 'fusion_limit', 'not_retrieved_by_any_leg'],
                ['none'],
                'nobody',
                [],
                []
            )
        ]::Array(Tuple(String, Array(String), Array(String), String, Array(String), Array(String)))
    ) as fix
)
