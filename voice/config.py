"""Section `voice` of the profile. Times are seconds; docs/profile.md is the reference."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from voice.backchannel import MAX_WORDS, is_phrase
from wire.config import EdgeConfig
from wire.strict import Invalid
from wire.urls import is_host, require_http

STUN_PORT = 3478  # RFC 8489, 8.1: where none is named


@dataclass(frozen=True)
class EndpointingConfig:
    """When a caller's turn is over. Silence is counted by VAD, which lags the last audible sample by 75 to 115 ms."""

    speech_threshold: float = 0.5  # Silero: probability at and above which a window is speech
    speculate_after_s: float = 0.064  # two windows: STT and the turn model start here
    min_wait_s: float = 0.16  # silence before the turn ends when everything says that it is over
    max_wait_s: float = 1.5  # ... when everything says the opposite
    patience: float = 0.0  # log odds of the end at which nothing is waited for: docs/measurements.md has the curve
    ask_language_model: bool = True  # whether words end a sentence, in the languages for which this is calibrated
    min_speech_s: float = 0.1  # shorter speech is noise
    max_turn_s: float = 30.0  # a caller who never pauses is answered after this

    def __post_init__(self) -> None:
        if not 0 < self.speech_threshold < 1:
            raise ValueError("speech_threshold must lie between 0 and 1")
        if not 0 < self.speculate_after_s <= self.min_wait_s <= self.max_wait_s <= 1.5:
            raise ValueError("needs 0 < speculate_after_s <= min_wait_s <= max_wait_s <= 1.5")
        if not -3 <= self.patience <= 3:
            raise ValueError("patience must be -3 to 3")
        if not 0 < self.min_speech_s < self.max_turn_s <= 55:
            raise ValueError("needs 0 < min_speech_s < max_turn_s <= 55")


@dataclass(frozen=True)
class AgentConfig:
    """What the agent says by itself, and what the model is told."""

    instructions: str = (
        "You are a friendly telephone agent. You speak with the caller, so answer with one or two short, "
        "plain sentences. No lists, no markup."
    )
    greeting: str = "Hello, you are through to the voice agent. How can I help you?"
    idle_prompt: str = "Are you still there?"
    goodbye: str = "Thank you for calling. Goodbye."
    filler: str = "One moment, please."
    apology: str = "Sorry, I did not get that. Could you say it again?"
    max_history_turns: int = 12  # older turns leave the prompt
    max_reply_tokens: int = 80
    temperature: float = 0.0
    repetition_penalty: float = 1.0  # of tokens that stand in prompt or answer; 1 is none

    def __post_init__(self) -> None:
        if self.max_history_turns < 1 or self.max_reply_tokens < 1:
            raise ValueError("max_history_turns and max_reply_tokens must be at least 1")
        if not 0 <= self.temperature <= 2:
            raise ValueError("temperature must be 0 to 2")
        if not 1 <= self.repetition_penalty <= 2:
            raise ValueError("repetition_penalty must be 1 to 2")


@dataclass(frozen=True)
class IceServer:
    """A STUN or TURN server (RFC 7064, RFC 7065). One of each kind is used, the first."""

    url: str
    username: str | None = None
    credential_file: Path | None = None  # holds the password of a TURN server

    def __post_init__(self) -> None:
        found = re.fullmatch(r"(?:stuns?|turns?):([^\s:?]+)(?::([0-9]{1,5}))?(?:\?transport=(?:udp|tcp))?", self.url)
        if found is None or not is_host(found[1]) or not 0 < int(found[2] or STUN_PORT) < 65536:
            problem = "no address such as stun:HOST:3478 or turn:HOST:3478?transport=udp"
            raise Invalid("url", f"{problem}: {self.url!r:.80}")
        if self.username is not None and not re.fullmatch(r"[!#-\[\]-~]+", self.username):
            raise Invalid("username", "printable ASCII without spaces, quotes and backslashes")  # of a header
        if self.url.startswith("turn") and (self.username is None or self.credential_file is None):
            raise ValueError("a TURN server needs username and credential_file")


@dataclass(frozen=True)
class WebRtcConfig:
    """How calls in browsers find the media path."""

    ice_addresses: tuple[str, ...] = ()  # of host candidates; default: those that `edge.host` stands for
    ice_servers: tuple[IceServer, ...] = ()  # told to callers as well

    def __post_init__(self) -> None:
        for address in self.ice_addresses:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise Invalid("ice_addresses", f"takes IP addresses, got {address!r:.80}") from None


@dataclass(frozen=True)
class VoiceConfig:
    edge: EdgeConfig
    stt_url: str
    tts_url: str
    llm_url: str
    llm_model: str
    service_key_file: Path | None = None  # sent as bearer key to the three services above
    prefill_tokens: int = 0  # `max_tokens` of a request that only warms the KV; servers that refuse 0 take 1
    max_calls: int = 2
    num_processes: int = 1  # that share the calls; each holds the detector and the turn model
    max_revisions: int = 1  # calls in which an answer is made before the turn is over; 0: recognition and prefill alone
    idle_after_s: float = 15.0  # silence of both sides before the idle prompt; a second one ends the call
    max_call_s: float = 1800.0
    barge_in_after_s: float = 0.7  # caller speech over the agent's that takes the turn, whatever the words are
    backchannels: tuple[str, ...] = ()  # phrases that do not take it, besides those of the language
    answer_deadline_s: float = 5.0  # end of turn -> first audio; then the agent apologises
    lead_s: float = 0.16  # audio sent ahead of real time: hides stalls, lost at barge-in
    duck_db: float = 12.0  # how much softer the agent goes on while a caller speaks over it
    vad_model: str = "silero-vad"
    turn_model: str = "smart-turn-v3.2"
    agent: AgentConfig = field(default_factory=AgentConfig)
    endpointing: EndpointingConfig = field(default_factory=EndpointingConfig)
    webrtc: WebRtcConfig = field(default_factory=WebRtcConfig)

    def __post_init__(self) -> None:
        for name in ("stt_url", "tts_url", "llm_url"):
            require_http(name, getattr(self, name))
        if self.max_calls < 1:
            raise ValueError("max_calls must be at least 1")
        if not 1 <= self.num_processes <= self.max_calls:
            raise ValueError("num_processes must be 1 to max_calls")
        if self.max_revisions < 0:
            raise ValueError("max_revisions must be 0 or more")
        for phrase in self.backchannels:
            if not is_phrase(phrase):
                raise Invalid("backchannels", f"each is 1 to {MAX_WORDS} words, got {phrase!r:.80}")
        if not 0 <= self.prefill_tokens <= 1:
            raise ValueError("prefill_tokens must be 0 or 1")
        if not 0.02 <= self.lead_s <= 0.4:
            raise ValueError("lead_s must be 0.02 to 0.4")
        if not 0 <= self.duck_db <= 60:
            raise ValueError("duck_db must be 0 to 60")
        for name in ("idle_after_s", "max_call_s", "barge_in_after_s", "answer_deadline_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0")
