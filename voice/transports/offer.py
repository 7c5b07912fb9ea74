"""A caller's SDP offer, checked for what aiortc takes for granted. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from aiortc import RTCRtpCodecParameters
from aiortc.rtp import DYNAMIC_PAYLOAD_TYPES
from aiortc.sdp import SessionDescription

from wire.errors import PeerError
from wire.ice import admitted_lines
from wire.rtc import BAD_SDP, EVENT_CLOCKS_HZ, EVENTS, is_event

DIRECTIONS = ("sendrecv", "sendonly", "recvonly", "inactive")


def checked_offer(offer: str, addresses: Sequence[str]) -> str:
    """The offer without candidates that are not to be checked. Raises: PeerError."""
    if "v=0" not in offer or "\0" in offer:
        raise PeerError("the body is no SDP offer", code="bad_sdp")
    sdp = "\r\n".join(_with_directions(admitted_lines(offer.splitlines(), addresses))) + "\r\n"
    try:
        description = SessionDescription.parse(sdp)
    except BAD_SDP as error:
        raise PeerError(f"the body is no SDP offer: {error}"[:200], code="bad_sdp") from None
    media = description.media
    audio = [section for section in media if section.kind == "audio" and section.port]
    both_ways = [section for section in audio if section.direction in (None, "sendrecv")]
    if not audio:
        raise PeerError("the offer has no audio", code="no_audio", http_status=422)
    if not both_ways:
        raise PeerError("the offered audio does not go both ways (a=sendrecv)", code="no_audio", http_status=422)
    for section in media:
        if section.dtls is None or not section.dtls.fingerprints or not section.dtls.role:
            raise PeerError("a section of the offer lacks a=fingerprint or a=setup", code="bad_sdp")
        if section.ice is None or not (section.ice.usernameFragment and section.ice.password):
            raise PeerError("a section of the offer lacks a=ice-ufrag or a=ice-pwd", code="bad_sdp")
    mids = {section.rtp.muxId for section in media}
    for group in description.group:
        if group.semantic == "BUNDLE" and group.items and group.items[0] not in mids:  # RFC 9143, 7.2.1
            raise PeerError("a=group:BUNDLE begins with a section that is not there", code="bad_sdp")
    return sdp


def events_to_accept(sdp: str, mid: str | None) -> list[RTCRtpCodecParameters]:
    """Of the telephone events that this section offers, one of each clock that we take."""
    found: dict[int, RTCRtpCodecParameters] = {}
    for media in SessionDescription.parse(sdp).media:
        audio = {codec.payloadType for codec in media.rtp.codecs if not is_event(codec)}
        for codec in media.rtp.codecs if media.kind == "audio" and media.rtp.muxId == mid else ():
            is_ours = codec.payloadType in DYNAMIC_PAYLOAD_TYPES and codec.payloadType not in audio
            if is_event(codec) and is_ours and codec.clockRate in EVENT_CLOCKS_HZ:
                answer = RTCRtpCodecParameters(
                    codec.mimeType, codec.clockRate, 1, codec.payloadType, parameters={EVENTS: None}
                )
                found.setdefault(codec.clockRate, answer)
    return list(found.values())


def _with_directions(lines: Sequence[str]) -> list[str]:
    """RFC 8866, 6.7: media without a direction goes both ways; aiortc wants it written down."""
    found: list[str] = []
    for line in lines:
        if line.startswith("m="):
            found += [line, "a=sendrecv"]
        elif line[2:] in DIRECTIONS and "a=sendrecv" in found:
            found[len(found) - 1 - found[::-1].index("a=sendrecv")] = line
        else:
            found.append(line)
    return found
