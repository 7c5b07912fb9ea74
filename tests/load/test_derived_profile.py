from __future__ import annotations

import urllib.parse
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deploy.catalogue import read_catalogue
from deploy.paths import DEFAULT_PROFILE
from deploy.profile import read_profile
from load.derived_profile import derived, num_ports, overridden
from load.errors import LoadError

PORTS = (9001, 9002, 9003, 9004, 9005)
PROXIES = {"stt": "http://127.0.0.1:7001", "llm": "http://127.0.0.1:7002", "tts": "http://127.0.0.1:7003"}


def default() -> dict[str, Any]:
    plain = yaml.safe_load(DEFAULT_PROFILE.read_text())
    assert isinstance(plain, dict)
    return plain


def test_both_halves_of_the_default_profile_are_profiles(tmp_path: Path) -> None:
    made = derived(default(), PORTS)
    for name, half in (("services", made.services), ("voice", made.call_server_at(PROXIES))):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(half))
    services = read_profile(tmp_path / "services.yaml", read_catalogue())
    voice = read_profile(tmp_path / "voice.yaml", read_catalogue()).voice
    assert voice is not None
    assert (voice.stt_url, voice.llm_url, voice.tts_url) == (PROXIES["stt"], PROXIES["llm"], PROXIES["tts"])
    assert {edge.port for _, _, edge in services.edges} | {voice.edge.port} == set(PORTS)
    assert voice.edge.port == made.port


def test_addresses_lead_to_the_new_ports() -> None:
    made = derived(default(), PORTS)
    ports = {name: made.services[name]["edge"]["port"] for name in ("stt", "tts_engine", "router")}
    assert made.targets == {
        "stt": f"http://127.0.0.1:{ports['stt']}",
        "tts": f"http://127.0.0.1:{ports['tts_engine']}",
        "llm": f"http://127.0.0.1:{ports['router']}",
    }
    [worker] = made.services["router"]["models"][0]["workers"]
    assert urllib.parse.urlsplit(worker["url"]).port == made.services["llm"]["workers"][0]["edge"]["port"]


def test_what_runs_elsewhere_is_left_where_it_is() -> None:
    profile = default()
    profile["voice"]["tts_url"] = "https://voices.example:8102/base"
    profile["router"]["models"][0]["workers"].append({"url": "http://127.0.0.1:8000"})
    made = derived(profile, PORTS)
    assert made.targets["tts"] == "https://voices.example:8102/base"
    assert made.services["router"]["models"][0]["workers"][1] == {"url": "http://127.0.0.1:8000"}


def test_a_profile_of_a_call_server_alone_has_no_services() -> None:
    made = derived({"voice": default()["voice"]}, PORTS[:1])
    assert made.services == {}
    assert made.targets["llm"] == "http://127.0.0.1:8103"


def test_nothing_is_opened_to_the_network_and_keys_stay_demanded() -> None:
    profile = default()
    profile["voice"]["edge"] |= {"host": "0.0.0.0", "api_key_file": "keys/calls"}
    profile["voice"]["webrtc"] = {"ice_addresses": ["203.0.113.7"]}
    made = derived(profile, PORTS)
    voice = made.call_server["voice"]
    assert voice["edge"]["host"] == "127.0.0.1"
    assert voice["edge"]["api_key_file"] == "keys/calls"
    assert voice["webrtc"] == {}
    assert made.key_files == {"voice": Path("keys/calls")}


def test_overrides_reach_sections_that_were_not_there() -> None:
    made = overridden(default(), {"voice.max_calls": 7, "voice.webrtc.ice_servers": [], "new.deep.key": 1})
    assert (made["voice"]["max_calls"], made["voice"]["webrtc"], made["new"]) == (
        7,
        {"ice_servers": []},
        {"deep": {"key": 1}},
    )
    assert default()["voice"]["max_calls"] != 7


def test_an_override_through_a_value_is_an_error() -> None:
    with pytest.raises(LoadError, match="'max_calls' is no section"):
        overridden(default(), {"voice.max_calls.more": 1})


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        ({}, "no call server"),
        ({"voice": None}, "no call server"),
        ({"voice": {"edge": 8080}}, "no call server"),
        ({"voice": {"edge": {"port": 1}, "llm_url": "x", "tts_url": 3}}, "names no voice.stt_url and no voice.tts_url"),
    ],
)
def test_a_profile_that_takes_no_calls_is_a_clear_error(profile: dict[str, Any], problem: str) -> None:
    with pytest.raises(LoadError, match=problem):
        derived(profile, PORTS[: num_ports(profile)])


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["http://127.0.0.1:1", "http://["]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["voice", "edge", "port", "workers", "url", "webrtc", "stt_url", "api_key_file", "x"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["voice", "stt", "llm"]), plain))
def test_a_file_that_is_no_profile_never_breaks_it_and_is_not_changed(profile: dict[str, Any]) -> None:
    before = yaml.safe_dump(profile)
    complete = {"voice": {"edge": {}, "stt_url": "a", "llm_url": "b", "tts_url": "c"}, **profile}
    try:
        derived(complete, range(9000, 9000 + num_ports(complete)))
    except LoadError:
        return
    finally:
        assert yaml.safe_dump(profile) == before
