"""What an English answer is said as. `\\n` in the table is a line break."""

from __future__ import annotations

import pytest

from voice.speakable import speakable

TABLE = r"""
Hello, how can I help you?|Hello, how can I help you?
I'm sorry — that's sold out.|I'm sorry — that's sold out.
It's 42.|It's forty two.
There are 3 left.|There are three left.
We have 1,250 rooms.|We have one thousand two hundred fifty rooms.
It has 2,500,000 users.|It has two million five hundred thousand users.
That is 3.14.|That is three point one four.
0.5 is enough.|zero point five is enough.
It is -5 today.|It is minus five today.
In 1984 and in 2026.|In nineteen eighty four and in twenty twenty six.
the year 2005|the year two thousand five
the 1990s|the nineteen nineties
your 1st and 22nd visit|your first and twenty second visit
on the 3rd floor|on the third floor
10-15 minutes|ten to fifteen minutes
pages 10–15|pages ten to fifteen
1.5-2 hours|one point five to two hours
3–5 km away|three to five kilometers away
2019-2020|twenty nineteen to twenty twenty
10%-20% off|ten percent to twenty percent off
$10-$20|ten dollars to twenty dollars
1/2 cup|one half cup
2 1/2 hours|two and a half hours
3/4 done|three quarters done
half of 7/9|half of seven slash nine
Open 24/7.|Open twenty four seven.
Call 555-1234.|Call five five five, one two three four.
Call (555) 123-4567 now.|Call five five five, one two three, four five six seven now.
Call 1-800-555-0199.|Call one, eight zero zero, five five five, zero one nine nine.
Dial +1 555 123 4567.|Dial plus one, five five five, one two three, four five six seven.
+44 20 7946 0958|plus four four, two zero, seven nine four six, zero nine five eight
Your PIN is 4821.|Your PIN is four eight two one.
The code is 0412.|The code is zero four one two.
Your order number is 48213.|Your order number is four eight two one three.
Order #1234|Order number one two three four
the card ending in 4242|the card ending in four two four two
4111 1111 1111 1111|four one one one, one one one one, one one one one, one one one one
zip code 90210|zip code nine zero two one zero
ext. 204|extension two zero four
Agent 007|Agent zero zero seven
confirmation code AB1234|confirmation code A B one two three four
Room B12|Room B twelve
at 9:30|at nine thirty
at 9:30 am|at nine thirty A M
at 9:30 a.m. sharp|at nine thirty A M sharp
at 3:30 p.m.|at three thirty P M.
At 3 p.m. We close.|At three P M. We close.
at 14:05|at fourteen oh five
at 3:00|at three o'clock
9am to 5pm|nine A M to five P M
9am-5pm Mon-Fri|nine A M to five P M monday to friday
9:00-17:00|nine o'clock to seventeen hundred
2026-11-30|november thirtieth, twenty twenty six
11/30/2026|november thirtieth, twenty twenty six
30/11/2026|november thirtieth, twenty twenty six
on 30/11|on november thirtieth
on 12/25|on december twenty fifth
on Nov 30|on november thirtieth
on Nov. 30, 2026|on november thirtieth, twenty twenty six
on November 30|on November thirtieth
on 30 November 2026|on the thirtieth of november, twenty twenty six
March 5th|March fifth
$1|one dollar
$3.50|three dollars and fifty cents
$0.99|ninety nine cents
-$5|minus five dollars
$1,234.56|one thousand two hundred thirty four dollars and fifty six cents
$1.5M|one point five million dollars
$2 billion|two billion dollars
$5k|five thousand dollars
€12|twelve euros
20€|twenty euros
€3,50|three euros and fifty cents
£12.99|twelve pounds and ninety nine pence
£1.01|one pound and one penny
¥500|five hundred yen
₩3,000|three thousand won
3,000원|three thousand won
50 USD|fifty dollars
EUR 12|twelve euros
50%|fifty percent
3.5 %|three point five percent
100% sure|one hundred percent sure
5 km|five kilometers
1 km|one kilometer
2.5kg|two point five kilograms
20 °C|twenty degrees celsius
72°F|seventy two degrees fahrenheit
-3°C|minus three degrees celsius
65 mph|sixty five miles per hour
80 km/h|eighty kilometers per hour
10 sq ft|ten square feet
50 m²|fifty square meters
16 GB|sixteen gigabytes
5ft tall|five feet tall
5'10" tall|five foot ten tall
5 in the morning|five in the morning
~20 minutes|about twenty minutes
>10 and <5|more than ten and less than five
≥3|at least three
±2|plus or minus two
1+2=3|one plus two equals three
3 × 4|three times four
3 * 4|three times four
Dr. Smith|doctor Smith
Mr. and Mrs. Lee|mister and missus Lee
Dr Kim|doctor Kim
12 Main St. today|twelve Main street today
St. Paul|saint Paul
John F. Kennedy|John F Kennedy
e.g. tea|for example tea
i.e. now|that is now
tea, etc.|tea, et cetera.
approx. 5 min away|approximately five minutes away
No. 5|number five
No. That is all.|No. That is all.
tea vs. coffee|tea versus coffee
U.S. firms|U S firms
the FBI and NASA|the FBI and NASA
AT&T|A T and T
rock & roll|rock and roll
w/ milk|with milk
C++ and C#|C plus plus and C sharp
version 2.0.1|version two point zero point one
192.168.1.1|one hundred ninety two dot one hundred sixty eight dot one dot one
he/she|he she
me@example.com|me at example dot com
first_last+x@my-shop.co.uk|first underscore last plus X at my dash shop dot co dot uk
www.example.com|W W W dot example dot com
https://example.com/help|example dot com slash help
http://example.com/a_b?c=1|example dot com slash A underscore B question mark C equals one
Visit example.com.|Visit example dot com.
<https://example.com>|example dot com
<help@example.com>|help at example dot com
**Total:** $5|Total: five dollars
*very* _good_ ***news***|very good news
~~old~~ new|old new
un**believ**able|unbelievable
**cut in the middle|cut in the middle
Run `pip install x`.|Run pip install x.
```bash\npip install x\n```|pip install x.
# Title\nText|Title. Text
Title:\n- one thing\n- another|Title: one thing. another
* a\n* b|a. b
1. Open it.\n2. Close it.|one. Open it. two. Close it.
1) Open it|one. Open it
- [x] done\n- [ ] open|done. open
> quoted|quoted
---\nText|Text
See [our site](https://example.com/a?b=1).|See our site.
![a cat](cat.png)|a cat
see [this][1] and that [2]|see this and that
half a link](https://example.com) is gone|half a link is gone
\| Name \| Price \|\n\|---\|---\|\n\| Tea \| $3 \||Name, Price. Tea, three dollars
\*not bold\*|not bold
a &amp; b|a and b
5&nbsp;km|five kilometers
&lt;b&gt;bold&lt;/b&gt;|bold
<b>bold</b><br>next|bold. next
snake_case|snake case
Settings → Privacy|Settings, Privacy
A -> B => C|A, B, C
Great! 😀 See you 👍🏽.|Great! See you.
👩‍👩‍👧 family|family
Thanks :)|Thanks
Wait… what?|Wait... what?
Really?!|Really?
"Sure," he said.|"Sure," he said.
1️⃣ First|one First
１２ ｋｍ|twelve kilometers
one\n\n\ntwo|one. two
yes😀no|yes no
+ 12% tax|plus twelve percent tax
+ an item|an item
I-95 N|I ninety five N
a 3-star hotel|a three star hotel
AB12-CD34|A B twelve C D thirty four
Settings > Privacy|Settings, Privacy
the --verbose flag|the verbose flag
Press * or #.|Press star or pound.
the ratio is 3:1|the ratio is three to one
$129.99/night|one hundred twenty nine dollars and ninety nine cents per night
twenty-one|twenty-one
"""
ROWS = [
    row.replace(r"\|", "\0").replace("|", "\1").replace("\0", "|").replace(r"\n", "\n").split("\1")
    for row in TABLE.strip().splitlines()
]


@pytest.mark.parametrize(("written", "spoken"), ROWS)
def test_said_as(written: str, spoken: str):
    assert speakable(written, "en").text.strip() == spoken


def test_blanks_at_the_ends_part_it_from_its_neighbours():
    assert speakable(" and more.", "en").text == " and more."
    assert speakable("I would be ", "en").text == "I would be "
    assert speakable("Tea\n", "en").text == "Tea. "
    assert speakable("Tea:\n", "en").text == "Tea: "
