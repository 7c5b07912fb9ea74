"""What written text is said as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.text.tokens import MAX_TOKEN_CHARACTERS, Mark, Said, tokenise

# Any Unicode, but more often what the rules look at.
ANY_TEXT = st.text(
    st.sampled_from(list("0123456789.,:;-–/$€%°#@&+*_`[]()<>!?'’ \n\tapmAPMstndrhkKſKDde½²٣한é\u0301"))
    | st.characters()
)

TABLE = """
0|zero
42|forty two
100|one hundred
101|one hundred one
999|nine hundred ninety nine
1000|one thousand
1,001|one thousand one
12,345|twelve thousand three hundred forty five
2,500,000,000|two billion five hundred million
3.14|three point one four
0.5|zero point five
.5|point five
-5|minus five
007|zero zero seven
90210|nine zero two one zero
10000|ten thousand
1984|nineteen eighty four
1900|nineteen hundred
1905|nineteen oh five
2000|two thousand
2005|two thousand five
2024|twenty twenty four
555-1234|five five five , one two three four
(555) 123-4567|five five five , one two three , four five six seven
+1 555 123 4567|plus one , five five five , one two three , four five six seven
1-800-555-0199|one , eight zero zero , five five five , zero one nine nine
+44 20 7946 0958|plus four four , two zero , seven nine four six , zero nine five eight
1st|first
2nd|second
3rd|third
12th|twelfth
21st|twenty first
30th|thirtieth
100th|one hundredth
1990s|nineteen nineties
1/2|one half
3/4|three quarters
½ cup|one half cup
24/7|twenty four seven
50/50|fifty fifty
7/9|seven slash nine
2 1/2 hours|two and a half hours
1 3/4 cups|one and three quarters cups
10%-20%|ten percent to twenty percent
20°-25°|twenty degrees to twenty five degrees
-20%|minus twenty percent
10-15|ten to fifteen
2019-2020|twenty nineteen to twenty twenty
50%|fifty percent
3.5 %|three point five percent
$1|one dollar
$3.50|three dollars and fifty cents
$0.99|ninety nine cents
$.50|fifty cents
$.00|zero dollars
$1,234.56|one thousand two hundred thirty four dollars and fifty six cents
$1.5M|one point five million dollars
$2 billion|two billion dollars
$10-$20|ten dollars to twenty dollars
-$5|minus five dollars
£1.01|one pound and one penny
20€|twenty euros
¥500|five hundred yen
3:30|three thirty
3:05|three oh five
3:00|three o'clock
15:45|fifteen forty five
3:30 p.m. today|three thirty P M today
At 3 p.m. We close|At three P M . We close
10 AM|ten A M
9am to 5pm|nine A M to five P M
9am-5pm|nine A M to five P M
9 a.m.–5 p.m. daily|nine A M to five P M daily
9:00-17:00|nine o'clock to seventeen hundred
spam-5|spam five
2024-03-05|march fifth , twenty twenty four
12/25/2023|december twenty fifth , twenty twenty three
March 5|March fifth
March 5th, 2024|March fifth , twenty twenty four
Dec. 3|december third
5 km|five kilometers
1 km|one kilometer
100 mph|one hundred miles per hour
72°F|seventy two degrees fahrenheit
-3°C|minus three degrees celsius
2.5 GB|two point five gigabytes
5ft|five feet
5 in the morning|five in the morning
1.2.3|one point two point three
Mr. Smith|mister Smith
Mrs. Jones|missus Jones
Dr. Lee|doctor Lee
Dr Lee|doctor Lee
12 Main St. today|twelve Main street today
St. Paul|saint Paul
e.g. this|for example this
i.e. that|that is that
pens, etc. and|pens , et cetera and
No. 5|number five
No. Five|No . Five
U.S. firms|U S firms
Ph.D. student|P H D student
AT&T|A T and T
R2D2|R two D two
MP3|M P three
COVID-19|COVID nineteen
AB1234|A B one two three four
#5|number five
#sale|hashtag sale
rock & roll|rock and roll
me@example.com|me at example dot com
www.example.com|W W W dot example dot com
https://example.com/help|example dot com slash help
example.com.|example dot com .
1+2=3|one plus two equals three
**bold** _it_ `code`|bold it code
# Title|Title
- item|item
[here](http://x.com)|here
<b>x</b>|x
hi 😀 there|hi there
wait... what|wait . . . what
well—yes|well , yes
don’t|don't
A plan|a plan
Section A|Section A
and/or|and or
Your PIN is 4821.|Your PIN is four eight two one .
the code: 48213|the code : four eight two one three
order number 1234|order number one two three four
order 1500 of them|order fifteen hundred of them
card ending in 4242|card ending in four two four two
extension 204|extension two zero four
4111 1111 1111 1111|four one one one , one one one one , one one one one , one one one one
978-3-16-148410-0|nine seven eight , three , one six , one four eight four one zero , zero
192.168.1.10|one hundred ninety two dot one hundred sixty eight dot one dot ten
on Nov 30|on november thirtieth
Nov 30, 2026|november thirtieth , twenty twenty six
Dec 2024|december twenty twenty four
on 30 November 2026|on the thirtieth of november , twenty twenty six
the 3 May meeting|the third of may meeting
30/11/2026|november thirtieth , twenty twenty six
30/11|november thirtieth
12/25|december twenty fifth
5/16 inch|five slash sixteen inch
3–5 km|three to five kilometers
1.5-2 hours|one point five to two hours
100 m|one hundred meters
12 V|twelve volts
10 sq ft|ten square feet
50 m²|fifty square meters
12 EUR|twelve euros
USD 50|fifty dollars
3,000원|three thousand won
€3,50|three euros and fifty cents
€1,000.50|one thousand euros and fifty cents
John F. Kennedy|John F Kennedy
plan B. Then|plan B . Then
at 5 P.M. We close|at five P M . We close
Mon-Fri|monday to friday
Mon.–Fri., 9-5|monday to friday , nine to five
~20 minutes|about twenty minutes
<5 and >=10|less than five and at least ten
±2|plus or minus two
w/ milk, w/o sugar|with milk , without sugar
C# and .NET|C sharp and dot NET
3 x 4|three times four
5'10"|five foot ten
$10/month|ten dollars per month
$5/mo. plan|five dollars per month . plan
12 USD/user|twelve dollars per user
60 km/h|sixty kilometers per hour
about 5 min. away|about five minutes away
1.5%/mo|one point five percent per month
$2-3k|two to three thousand dollars
$2-3|two to three dollars
US$5|five dollars
3:1|three to one
4.5/5|four point five out of five
the SSN ends in 6789|the SSN ends in six seven eight nine
2 tbsp|two tablespoons
press * or #|press star or pound
dial *67|dial star sixty seven
account # 12|account number twelve
2 * 3|two times three
x^2 + y^3|x squared plus y cubed
10^6|ten to the power of six
tea vs. A.I.|tea versus A I .
It takes 5 min. Then|It takes five minutes . Then
"""


def said(text: str) -> str:
    return " ".join(" ".join(token.words) if isinstance(token, Said) else token.mark for token in tokenise(text))


@pytest.mark.parametrize(("text", "expected"), [row.split("|") for row in TABLE.strip().splitlines()])
def test_said_as(text: str, expected: str):
    assert said(text) == expected


@given(ANY_TEXT)
def test_any_text_gives_ordered_tokens_within_it(text: str):
    at = 0
    for token in tokenise(text):
        assert token.start >= at
        at = token.start
        if isinstance(token, Said):
            assert token.start < token.end <= len(text)
            assert token.end - token.start <= MAX_TOKEN_CHARACTERS
            assert token.words
            assert all(token.words)
            at = token.end
        else:
            assert token.mark in ",;:.!?"


def test_a_word_keeps_its_characters():
    text = "At 3:30 p.m. call (555) 123-4567, please."

    spans = [text[t.start : t.end] for t in tokenise(text) if isinstance(t, Said)]
    assert spans == ["At", "3:30 p.m.", "call", "(555) 123-4567", "please"]


def test_a_sentence_end_behind_an_abbreviation_is_heard():
    assert tokenise("See you at 3 p.m.")[-1] == Mark(".", 16)
    assert tokenise("He works for Acme Inc.")[-1] == Mark(".", 21)
