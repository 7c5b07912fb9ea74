"""What a profile asks of a machine: memory, disk, descriptors. Pure; estimates from what was measured.

Memory is that of the processes that do not run yet: those that run have taken theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from deploy.catalogue import Catalogue
from deploy.doctor.machine import Needs
from deploy.profile import Profile
from llm.config import WeightFormat

# Fitted to the resident memory at rest, "Start and rest" in docs/measurements.md (voice 230, stt 604, tts_engine 290,
# router 65, llm 849, supervisor 129 MB): a fixed part, and a multiple of the weights. Pages that processes share count
# in each; of the sum of 2167 MB these are 260.
PROCESS_BYTES = {"voice": 220e6, "stt": 118e6, "tts_engine": 89e6, "router": 65e6, "llm": 524e6}
VOICE_FRONT_BYTES = 50e6  # of a call server of several processes: bench/idle_calls.py, resident
BYTES_PER_WEIGHT_BYTE = {"voice": 1.0, "stt": 1.6, "tts_engine": 2.9, "router": 0.0}
LLM_BYTES_PER_WEIGHT_BYTE: Mapping[WeightFormat, float] = {"int4": 3.3, "int8": 2.2, "bfloat16": 3.3, "float32": 5.5}
SUPERVISOR_BYTES = 129e6

# What a process writes into the cache at its first start, as a multiple of its weights: the sizes of the files for
# SmolLM2-135M (98 MB of GGUF) and for a voice.
DERIVED_LLM: Mapping[WeightFormat, float] = {"int4": 1.0, "int8": 1.4, "bfloat16": 2.8, "float32": 5.5}
DERIVED_VOICE = 1.0

# Read from /proc/PID/fd: voice holds 18 at rest and 4 more for a call, over WebSocket and over WebRTC with one address.
# Each further address takes a socket, so there is room for some.
BASE_DESCRIPTORS = 128
DESCRIPTORS_PER_CALL = 16


def needs_of(profile: Profile, catalogue: Catalogue, missing: Collection[str], running: Collection[str]) -> Needs:
    """`missing`: model ids that are to be fetched. `running`: names of processes that run already."""
    sizes = {model: catalogue.model(model).size_bytes for model in profile.models}
    memory = {name: needed for name, needed in _memory_bytes(profile, sizes).items() if name not in running}
    max_calls = profile.voice.max_calls if profile.voice is not None else 0
    wide = [i for i, worker in enumerate(profile.llm_workers.values()) if worker.weight_format == "bfloat16"]
    return Needs(
        memory_bytes=sum(memory.values()) + SUPERVISOR_BYTES if memory else 0.0,
        disk_bytes=_disk_bytes(profile, catalogue, missing),
        descriptors=BASE_DESCRIPTORS + DESCRIPTORS_PER_CALL * max_calls,
        max_calls=max_calls,
        bfloat16_where=f"llm.workers[{wide[0]}].weight_format" if wide else "",
    )


def _memory_bytes(profile: Profile, sizes: Mapping[str, int]) -> dict[str, float]:
    """By process."""
    weights: dict[str, int] = {}
    if (voice := profile.voice) is not None:
        weights["voice"] = sizes[voice.vad_model] + sizes[voice.turn_model]
    if (stt := profile.stt) is not None:
        weights["stt"] = sum(sizes[model.id] * model.num_instances for model in stt.models)
    if (tts := profile.tts_engine) is not None:
        weights["tts_engine"] = sizes[tts.lexicon] + sum(sizes[each.model] for each in tts.voices)
    if profile.router is not None:
        weights["router"] = 0
    found = {name: PROCESS_BYTES[name] + BYTES_PER_WEIGHT_BYTE[name] * loaded for name, loaded in weights.items()}
    if voice is not None and voice.num_processes > 1:
        found["voice"] = VOICE_FRONT_BYTES + voice.num_processes * found["voice"]
    for name, worker in profile.llm_workers.items():
        found[name] = PROCESS_BYTES["llm"] + LLM_BYTES_PER_WEIGHT_BYTE[worker.weight_format] * sizes[worker.weights]
    return found


def _disk_bytes(profile: Profile, catalogue: Catalogue, missing: Collection[str]) -> float:
    """Models are fetched one after the other, so their wheels never lie side by side."""
    models = [catalogue.model(model) for model in missing]
    work = max((catalogue.work_bytes(model, model.sources[0]) - model.size_bytes for model in models), default=0)
    derived = {worker.weights: DERIVED_LLM[worker.weight_format] for worker in profile.llm_workers.values()}
    if profile.tts_engine is not None:
        derived |= {voice.model: DERIVED_VOICE for voice in profile.tts_engine.voices}
    return work + sum(model.size_bytes * (1 + derived.get(model.id, 0.0)) for model in models)
