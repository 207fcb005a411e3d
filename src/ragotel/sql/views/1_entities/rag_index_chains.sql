-- answers: which loads make up the content of an index version, newest first?
-- grain:   one row per index version
-- reads:   rag_index_versions
-- chain: the version, its parent, and so on; is_whole: every link was loaded whole, down to a version without a
-- parent. A circle never ends at such a one, so it is not whole.
create or replace view rag_index_chains as
with
    families as (
        select
            index_name,
            groupArray(version) as all_versions,
            mapFromArrays(groupArray(version), groupArray(parent_version)) as parents
        from rag_index_versions final
        group by index_name
    ),
    chained as (
        select
            index_name,
            version,
            arrayFold(
                (links, step) -> if(
                    links[-1] = '' or not mapContains(parents, links[-1]),
                    links,
                    arrayPushBack(links, parents[links[-1]])
                ),
                range(length(all_versions) + 1),
                [version]
            ) as links
        from families
        array join all_versions as version
    )
select
    index_name,
    version,
    has(links, '') as is_whole,
    arrayFilter(link -> link != '', links) as chain
from chained
