-- answers: is this the service of the canary that `ragotel doctor` sends, and no service of a user?
-- grain:   one function
-- reads:   nothing
create or replace function rag_is_canary as (service) -> service = 'ragotel-doctor'
