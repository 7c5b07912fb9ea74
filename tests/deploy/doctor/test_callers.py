from __future__ import annotations

import dataclasses

import pytest

from deploy.doctor.callers import Reach, check_callers
from deploy.doctor.findings import Finding
from deploy.doctor.read_reach import read_reach
from voice.config import IceServer, VoiceConfig, WebRtcConfig
from wire.config import EdgeConfig

HERE = Reach("127.0.0.1", 8080, ("127.0.0.1",), {}, has_servers=False)
OPEN = Reach("0.0.0.0", 8080, ("10.0.0.5",), {}, has_servers=False)


def found(reach: Reach) -> dict[str, Finding]:
    return {finding.name: finding for finding in check_callers(reach)}


def test_loopback_is_ok() -> None:
    assert {name: finding.level for name, finding in found(HERE).items()} == {"microphone": "ok", "media": "ok"}


def test_page_beyond_loopback_wants_https_or_a_tunnel() -> None:
    microphone = found(OPEN)["microphone"]
    assert microphone.level == "warning"
    assert "reverse proxy with TLS in front of http://127.0.0.1:8080" in microphone.mend
    assert "ssh -L 8080:127.0.0.1:8080 HOST" in microphone.mend


def test_private_addresses_without_servers_are_a_hint() -> None:
    outside = found(OPEN)["outside"]
    assert outside.level == "warning"
    assert "voice.webrtc.ice_servers" in outside.mend
    assert found(dataclasses.replace(OPEN, has_servers=True))["outside"].level == "ok"
    assert found(dataclasses.replace(OPEN, addresses=("10.0.0.5", "8.8.4.4")))["outside"].level == "ok"


def test_address_of_another_machine_is_a_problem_with_its_key() -> None:
    media = found(dataclasses.replace(OPEN, unbindable={"10.0.0.9": "Cannot assign requested address"}))["media"]
    assert (media.level, media.found) == ("problem", "no UDP socket at 10.0.0.9: Cannot assign requested address")
    assert "voice.webrtc.ice_addresses" in media.mend


def config(host: str, *addresses: str, servers: tuple[IceServer, ...] = ()) -> VoiceConfig:
    edge = EdgeConfig(8080, host, api_key_file=None if host == "127.0.0.1" else "key")  # type: ignore[arg-type]
    stt, llm, tts = (f"http://127.0.0.1:{port}" for port in (8101, 8102, 8103))
    return VoiceConfig(edge, stt, llm, tts, "model", webrtc=WebRtcConfig(addresses, servers))


def test_addresses_are_tried_on_this_machine() -> None:
    assert read_reach(config("127.0.0.1")) == HERE
    foreign = read_reach(config("127.0.0.1", "127.0.0.1", "192.0.2.1", "2001:db8::1"))
    assert set(foreign.unbindable) == {"192.0.2.1", "2001:db8::1"}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_server_open_to_the_network_is_read_without_a_crash(host: str) -> None:
    reach = read_reach(config(host, servers=(IceServer("stun:stun.example.org:3478"),)))
    assert reach.has_servers
    assert bool(reach.unbindable) == (host == "192.0.2.1")
