-- answers: in which wordings may this quantity stand in a normalised text?
-- grain:   one function
-- reads:   nothing
-- number and unit as rag_quantities gives them: 5 seats is also five seats, 5-seat; 10 % is 10%, 10 percent; €12 is 12 eur.
-- No unit is converted into another: "three weeks" is no wording of "21 days".
create or replace function rag_wordings as (number, unit) ->
    arrayDistinct(
        arrayFlatten(
            arrayMap(
                form -> multiIf(
                    unit in ('', 'date'), [form],
                    unit = '%', [concat(form, '%'), concat(form, ' %'), concat(form, ' percent'), concat(form, ' per cent'), concat(form, ' prozent')],
                    unit in ('eur', 'usd', 'gbp', 'jpy'),
                    arrayFlatten(
                        arrayMap(
                            sign -> [concat(sign, form), concat(sign, ' ', form), concat(form, sign), concat(form, ' ', sign)],
                            multiIf(
                                unit = 'eur', ['€', 'eur', 'euro', 'euros'],
                                unit = 'usd', ['$', 'usd', 'dollar', 'dollars'],
                                unit = 'gbp', ['£', 'gbp', 'pound', 'pounds'],
                                ['¥', 'jpy', 'yen', 'yen']
                            )
                        )
                    ),
                    arrayFlatten(
                        arrayMap(
                            name -> [concat(form, ' ', name), concat(form, '-', name), concat(form, name)],
                            [replaceRegexpOne(unit, 's$', ''), concat(replaceRegexpOne(unit, 's$', ''), 's')]
                        )
                    )
                ),
                [
                    number,
                    if(match(number, '^\\d{1,3}(?:,\\d{3})+$'), replaceAll(number, ',', ''), number),
                    transform(
                        number,
                        ['2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '20', '30', '60', '90'],
                        ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve', 'twenty', 'thirty', 'sixty', 'ninety'],
                        number
                    )
                ]
            )
        )
    )
