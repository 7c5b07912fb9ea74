import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import calls, listen, speak
from wire.errors import PeerError
from wire.messages import MAX_JSON_BYTES, decode, encode


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        (listen.Finalize(3, 16000), listen.CLIENT_MESSAGES),
        (listen.Final(1, 2, "hi", 0, 16000, 4.5, (listen.Word("hi", 0, 8000),)), listen.SERVER_MESSAGES),
        (speak.Words(7, (speak.Word("네", 0, 10, 0, 1),)), speak.SERVER_MESSAGES),
        (calls.Turn(1, "answered", "a", "b", 512.3, {"stt": 512.3}), calls.SERVER_MESSAGES),
        (calls.Bye("idle"), calls.SERVER_MESSAGES),
    ],
)
def test_what_is_encoded_is_decoded(message, kinds):
    assert decode(encode(message), kinds) == message


def test_absent_and_null_mean_the_same():
    assert "words" not in json.loads(encode(listen.Final(1, 2, "hi", 0, 16000, 4.5)))
    hello = '{"type":"hello","version":1,"sample_rate_hz":null,"voice":null,"greeting":null}'
    assert decode(hello, calls.CLIENT_MESSAGES) == calls.Hello(1)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("{", "bad_json", "not JSON"),
        ("[" * 100_000, "bad_json", "not JSON"),
        ("[1]", "bad_json", "a JSON object is expected"),
        ('{"type":"finalize","id":1,"\\ud800":1}', "bad_json", "surrogates not allowed"),
        ('{"type":"finalize","id":1,"deadline_ms":Infinity}', "bad_json", "Out of range"),
        ('{"type":"finalize","id":1,"deadline_ms":1e999}', "bad_json", "Out of range"),
        ('{"type":"finalize","id":1,"deadline_ms":1' + "0" * 400 + "}", "bad_message", "out of range"),
        ('{"type":"finalize","id":1,"' + "k" * 1000 + '":1}', "bad_message", "finalize.k{60}: unknown key"),
        ("{}", "bad_message", "unknown message type None"),
        ('{"type":"finalise","id":1}', "bad_message", "did you mean 'finalize'?"),
        ('{"type":"finalize"}', "bad_message", "finalize.id: missing"),
        ('{"type":"finalize","id":"1"}', "bad_message", "finalize.id: expected int"),
        ('{"type":"finalize","id":1,"x":2}', "bad_message", "finalize.x: unknown key"),
        ('"' + "x" * MAX_JSON_BYTES + '"', "too_large", "at most"),
    ],
)
def test_broken_messages_are_answered_clearly(text: str, code: str, message: str):
    with pytest.raises(PeerError, match=message.replace("?", r"\?")) as error:
        decode(text, listen.CLIENT_MESSAGES)
    assert error.value.code == code


@pytest.mark.parametrize(
    "given",
    [
        '{"digits":"4711x"}',
        '{"digits":4711}',
        '{"digits":["4711"]}',
        '{"digits":""}',
        '{"digits":"' + "4711" * 9 + '"}',
    ],
)
def test_keys_that_are_none_are_an_error_that_does_not_tell_them(given: str):
    with pytest.raises(PeerError, match=r"dtmf\.digits: ") as error:
        decode('{"type":"dtmf",' + given[1:], calls.CLIENT_MESSAGES)
    assert "4711" not in str(error.value)


def test_keys_do_not_show_where_a_message_is_logged():
    message = decode('{"type":"dtmf","digits":"4711#"}', calls.CLIENT_MESSAGES)
    assert message == calls.Dtmf("4711#")
    assert "4711" not in repr(message)


@given(st.text(max_size=200))
def test_any_text_is_a_message_or_a_peer_error(text: str):
    with contextlib.suppress(PeerError):
        decode(text, calls.CLIENT_MESSAGES)
