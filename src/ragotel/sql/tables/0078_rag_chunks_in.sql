-- answers: which passages are being loaded with a manifest?
-- grain:   keeps nothing; a row written here becomes a row of rag_chunks
-- reads:   nothing
create table if not exists rag_chunks_in
(
    chunk_sha String,
    text      String
)
engine = Null
