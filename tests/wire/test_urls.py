import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.strict import Invalid
from wire.urls import HTTP, is_host, require_http, split_url


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:8101", "127.0.0.1", 8101),
        ("https://api.example.com/v1/", "api.example.com", None),
        ("http://[::1]:80", "::1", 80),
        ("HTTP://stt_1:9000", "stt_1", 9000),
    ],
)
def test_addresses_are_split(url: str, host: str, port: int | None):
    parts = split_url(url, HTTP)
    assert (parts.hostname, parts.port) == (host, port)
    assert parts.geturl().startswith("http")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "must start with http:// or https://"),
        ("ws://a", "must start with http:// or https://"),
        ("http://[::1", "no address: "),
        ("http://a:x", "no address: "),
        ("http://a:65536", "no address: "),
        ("http://a:0", "no port 0"),
        ("http://", "no address of a host"),
        ("http://:80", "no address of a host"),
        ("http://a..b", "no address of a host"),
        ("http://-a", "no address of a host"),
        (f"http://{'a' * 64}", "no address of a host"),
        (f"http://{'a.' * 127}a", "no address of a host"),
        ("http://a\0:80", "printable ASCII"),
        ("http://a b", "printable ASCII"),
        ("http://b\u00fccher", "printable ASCII"),
        ("http://a\nb", "printable ASCII"),
        ("http://u:secret@a", "a user in an address is not sent: http://a"),
        ("http://a/?x=1", "ends before"),
        ("http://a/?", "ends before"),
        ("http://a/#x", "ends before"),
    ],
)
def test_what_is_no_address_is_told(url: str, problem: str):
    with pytest.raises(Invalid) as caught:
        require_http("url", url)
    assert caught.value.where == "url"
    assert problem in caught.value.problem
    assert "secret" not in caught.value.problem


@given(st.text(st.sampled_from("ht:/[]@?#%.a1\0\n-\u212a "), max_size=20))
def test_any_text_is_an_address_with_a_host_or_a_value_error(text: str):
    try:
        parts = split_url(f"http://{text}", HTTP)
    except ValueError:
        return
    assert is_host(parts.hostname or "")
    assert (parts.query, parts.fragment, parts.username) == ("", "", None)
