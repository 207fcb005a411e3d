-- answers: which factor of a right answer failed first, for each passage that the answer needs?
-- grain:   one row per request × label × gold passage
-- reads:   triage_verdicts
create or replace view triage_passages as
select * except (journey)
from triage_verdicts
where passage > 0
