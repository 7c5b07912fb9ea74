"""Faults of the voice on one connection of `WS /v1/speak`, each on one utterance."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from load.faults.socket_hop import Ends, message_of
from load.faults.stages import Plan, StageFault, TtsDeath, TtsSilence, TtsStall
from wire import speak
from wire.pcm import Pcm16, pack_utterance, unpack_utterance


@dataclass
class _Utterance:
    fault: StageFault | None
    num_samples: int = 0  # handed on
    is_struck: bool = False  # the fault's moment has come


class TtsConversation:
    def __init__(self, plan: Plan, ends: Ends) -> None:
        self._plan = plan
        self._ends = ends
        self._utterances: dict[int, _Utterance] = {}  # until done or cancelled
        self._rate_hz = 0

    async def up(self, data: str | bytes) -> None:
        message = message_of(data)
        number = message.get("utterance")
        if message.get("type") == speak.Text.TYPE and isinstance(number, int) and number not in self._utterances:
            self._utterances[number] = _Utterance(self._plan.take())
        await self._ends.to_service(data)

    async def down(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            await self._hear(*unpack_utterance(data))
            return
        message = message_of(data)
        kind, number = message.get("type"), message.get("utterance")
        if kind == speak.Ready.TYPE:
            self._rate_hz = message["sample_rate_hz"]
        utterance = self._utterances.get(number, _Utterance(None)) if isinstance(number, int) else _Utterance(None)
        is_over = kind in (speak.Done.TYPE, speak.Cancelled.TYPE, speak.Error.TYPE)
        if kind != speak.Cancelled.TYPE and (is_over or self._left(utterance) == 0):
            await self._strike(utterance)
        if kind == speak.Cancelled.TYPE or not self._is_mute(utterance):
            await self._ends.to_client(data)
        if is_over and isinstance(number, int):
            self._utterances.pop(number, None)

    async def _hear(self, number: int, pcm: Pcm16) -> None:
        utterance = self._utterances.get(number) or _Utterance(None)
        if isinstance(utterance.fault, TtsSilence):
            pcm = np.zeros_like(pcm)
        left = self._left(utterance)
        if left is not None and left < pcm.size:
            await self._send(number, utterance, pcm[:left])
            await self._strike(utterance)
            pcm = pcm[left:]
        await self._send(number, utterance, pcm)

    async def _send(self, number: int, utterance: _Utterance, pcm: Pcm16) -> None:
        if pcm.size and not self._is_mute(utterance):
            utterance.num_samples += pcm.size
            await self._ends.to_client(pack_utterance(number, pcm))

    def _left(self, utterance: _Utterance) -> int | None:
        """Samples until the fault strikes; None when none will."""
        if utterance.is_struck or not isinstance(utterance.fault, TtsStall | TtsDeath):
            return None
        return max(0, round(utterance.fault.after_s * self._rate_hz) - utterance.num_samples)

    async def _strike(self, utterance: _Utterance) -> None:
        if utterance.is_struck:
            return
        utterance.is_struck = True
        match utterance.fault:
            case TtsDeath():
                self._ends.abort()
            case TtsStall(for_s=for_s) if for_s is not None:
                await asyncio.sleep(for_s)  # all of the connection waits, and the service with it

    @staticmethod
    def _is_mute(utterance: _Utterance) -> bool:
        match utterance.fault:
            case TtsDeath():
                return utterance.is_struck
            case TtsStall(for_s=None):
                return utterance.is_struck
        return False
