-- answers: at which time does a span stand in the typed tables?
-- grain:   one function
-- reads:   nothing
-- Not on the last day that the time type holds: its end would overflow, and so would every view's windows.
create or replace function rag_storable_start as (started_at) ->
    least(started_at, toDateTime64('2262-04-10 00:00:00', 9, 'UTC'))
