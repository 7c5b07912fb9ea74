"""What a Korean answer is said as. `\\n` in the table is a line break."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speakable import speakable
from voice.speakable.numbers_ko import native, sino

TABLE = r"""
안녕하세요, 무엇을 도와드릴까요?|안녕하세요, 무엇을 도와드릴까요?
숫자 7|숫자 칠
10|십
11|십일
100|백
110|백십
1000|천
2026|이천이십육
10,000|만
12,345|만 이천삼백사십오
110,000|십일만
100,000,000|일억
3.14|삼점일사
0.5|영점오
-5|마이너스 오
007|공공칠
3,000원|삼천 원
가격은 12,500원입니다.|가격은 만 이천오백 원입니다.
1만 원|만 원
5만원|오만원
3만 5천 원|삼만 오천 원
1억 2천만 원|일억 이천만 원
₩50,000|오만 원
$3.50|삼 달러 오십 센트
$12|십이 달러
100달러|백 달러
€12|십이 유로
£5|오 파운드
12 USD|십이 달러
50%|오십 퍼센트
3.5%p|삼점오 퍼센트포인트
10~20%|십에서 이십 퍼센트
사과 3개|사과 세 개
학생 20명|학생 스무 명
21명|스물한 명
1,500명|천오백 명
35살|서른다섯 살
45세|사십오 세
커피 2잔|커피 두 잔
책 5권|책 다섯 권
고양이 1마리|고양이 한 마리
1번째|첫 번째
2번째|두 번째
3번 시도했습니다|세 번 시도했습니다
1번을 눌러 주세요|일 번을 눌러 주세요
3번 출구|삼 번 출구
2호선|이 호선
3층|삼 층
101호|백일 호
30대 여성|삼십 대 여성
차 3대|차 세 대
제3장|제삼 장
비밀번호 4자리|비밀번호 네 자리
3인분|삼 인분
1박 2일|일 박 이일
6개월|육 개월
2주|이 주
오후 3시 30분|오후 세 시 삼십 분
12시|열두 시
14시|십사 시
9:30|아홉 시 삼십 분
14:05|십사 시 오 분
9:30 AM|오전 아홉 시 삼십 분
3pm|오후 세 시
1시간 30분|한 시간 삼십 분
24시간|이십사 시간
9시~18시|아홉 시에서 십팔 시
9:00 ~ 18:00|아홉 시에서 십팔 시
5~10분|오에서 십 분
3~5개|세 개에서 다섯 개
2026년 11월 30일|이천이십육 년 십일월 삼십일
6월 6일|유월 육일
10월 10일|시월 십일
2026-11-30|이천이십육 년 십일월 삼십일
2026.11.30|이천이십육 년 십일월 삼십일
11/30|십일월 삼십일
1/2|이분의 일
3:2로 이겼습니다|삼 대 이로 이겼습니다
010-1234-5678|공일공, 일이삼사, 오육칠팔
02-123-4567|공이, 일이삼, 사오육칠
1588-1234로 전화|일오팔팔, 일이삼사로 전화
인증번호는 4821입니다.|인증번호는 사팔이일입니다.
주문번호: 48213|주문번호: 사팔이일삼
우편번호 06236|우편번호 공육이삼육
카드 끝자리 4242|카드 끝자리 사이사이
5km|오 킬로미터
3kg|삼 킬로그램
500ml|오백 밀리리터
60km/h|시속 육십 킬로미터
20℃|이십 도
-5°C|영하 오 도
-5도|영하 오 도
16GB|십육 기가바이트
33㎡|삼십삼 제곱미터
iPhone 15|iPhone 십오
A & B|A 앤드 B
한국 vs 일본|한국 대 일본
(주)오프훅|주식회사 오프훅
example.com|example 닷컴
https://example.co.kr/help|example 닷 씨오 닷 케이알 슬래시 help
help@example.com|help 골뱅이 example 닷컴
**중요:** 확인하세요|중요: 확인하세요
- 사과 2개\n- 배 3개|사과 두 개. 배 세 개
1. 앱을 여세요.\n2. 누르세요.|일. 앱을 여세요. 이. 누르세요.
[홈페이지](https://example.com)에서|홈페이지에서
설정 → 개인정보|설정, 개인정보
감사합니다 😀|감사합니다
좋아요ㅋㅋㅋ|좋아요
알겠습니다~|알겠습니다
１２명|열두 명
하루 3번, 드세요|하루 세 번, 드세요
정답은 3번, 입니다|정답은 삼 번, 입니다
8~16자리|여덟 자리에서 열여섯 자리
20~30대|이십에서 삼십 대
여권번호 M12345678|여권번호 M일이삼사오육칠팔
901201-1234567|구공일이공일, 일이삼사오육칠
1/4분기|일사분기
1조 2,345억 원|일 조 이천삼백사십오억 원
12월 3일(화)|십이월 삼일(화)
설정 > 알림|설정, 알림
12.5만 명|십이점오만 명
"""
ROWS = [row.replace(r"\n", "\n").split("|") for row in TABLE.strip().splitlines()]


@pytest.mark.parametrize(("written", "spoken"), ROWS)
def test_said_as(written: str, spoken: str):
    assert speakable(written, "ko").text.strip() == spoken


def test_a_region_does_no_harm():
    assert speakable("3개", "ko-KR").text == "세 개"


@given(st.integers(1, 10**16 - 1))
def test_sino_korean_numbers_can_be_read_back(number: int):
    assert _value(sino(str(number))) == number


def test_native_numbers_are_all_different():
    assert len({native(number) for number in range(1, 100)}) == 99
    assert native(20) == "스무"
    assert native(21) == "스물한"


def _value(said: str) -> int:
    total = 0
    for group in said.split():
        scale = next((10 ** (4 * (i + 1)) for i, name in enumerate("만억조") if group.endswith(name)), 1)
        group = group.rstrip("만억조")
        value = digit = 0
        for char in group:
            if (place := "십백천".find(char)) >= 0:
                value += max(1, digit) * 10 ** (place + 1)
                digit = 0
            else:
                digit = "영일이삼사오육칠팔구".index(char)
        total += (value + digit if group else 1) * scale
    return total
