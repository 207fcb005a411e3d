-- answers: which loads make up the content of an index version, newest first?
-- grain:   one row per index version × version in its chain of parents (depth 0 is itself)
-- reads:   rag_index_versions
-- is_whole: every link of the chain was loaded whole, down to one without a parent. A circle never ends
-- at such a one, so it is not whole.
create or replace view rag_index_lineage as
with
    versions as (
        select index_name, version, parent_version, load_id
        from rag_index_versions final
    ),
    families as (
        select
            index_name,
            groupArray(version) as all_versions,
            mapFromArrays(groupArray(version), groupArray(parent_version)) as parents,
            mapFromArrays(groupArray(version), groupArray(load_id)) as loads
        from versions
        group by index_name
    )
select
    index_name,
    version,
    has(chain, '') as is_whole,
    ancestor,
    toUInt32(step - 1) as depth,
    loads[ancestor] as load_id
from (
    select
        index_name,
        loads,
        version,
        arrayFold(
            (links, step) -> if(
                links[-1] = '' or not mapContains(parents, links[-1]),
                links,
                arrayPushBack(links, parents[links[-1]])
            ),
            range(length(all_versions) + 1),
            [version]
        ) as chain
    from families
    array join all_versions as version
)
array join
    chain as ancestor,
    arrayEnumerate(chain) as step
where ancestor != ''
