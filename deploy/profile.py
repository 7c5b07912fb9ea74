"""The whole profile: every section that is present, parsed and checked against the others and the catalogue.

A section that is absent is a process that runs elsewhere, or nowhere: without `llm`, for example, the router's
workers are somebody else's vLLM. What the profile asks for follows from it: models to pull, processes to start.
"""

from __future__ import annotations

import os
import sys
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.catalogue import Catalogue
from deploy.child import Spec
from deploy.paths import PROFILES
from llm.config import LlmConfig, WorkerConfig
from router.config import RouterConfig
from stt.config import SttConfig
from tts_engine.config import TtsConfig
from voice.config import VoiceConfig
from wire.config import ConfigError, Document, EdgeConfig, is_loopback, read, read_key, read_secret
from wire.strict import nearest

# numpy's matrix products are small here: a second BLAS thread costs more than it wins (measured: mel spectrum of 8 s,
# 1.0 ms with one thread, 1 to 36 ms with two, on two cores).
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
ONE_THREAD = {**ONE_BLAS_THREAD, "OMP_NUM_THREADS": "1"}

FIRST_PORT = 8080  # of `deploy/profiles/cpu.yaml`
ELSEWHERE = -1  # a port that nobody here has


@dataclass(frozen=True)
class Profile:
    voice: VoiceConfig | None = None
    stt: SttConfig | None = None
    tts_engine: TtsConfig | None = None
    router: RouterConfig | None = None
    llm: LlmConfig | None = None

    @property
    def edges(self) -> tuple[tuple[str, str, EdgeConfig], ...]:
        """Process, dotted path and edge of everything that listens."""
        found: list[tuple[str, str, EdgeConfig]] = []
        if self.voice is not None:
            found.append(("voice", "voice.edge", self.voice.edge))
        if self.stt is not None:
            found.append(("stt", "stt.edge", self.stt.edge))
        if self.tts_engine is not None:
            found.append(("tts_engine", "tts_engine.edge", self.tts_engine.edge))
        if self.router is not None:
            found.append(("router", "router.edge", self.router.edge))
        for i, (name, worker) in enumerate(self.llm_workers.items()):
            found.append((name, f"llm.workers[{i}].edge", worker.edge))
        return tuple(found)

    @property
    def llm_workers(self) -> dict[str, WorkerConfig]:
        """A process each: `llm` when it is alone, else `llm-1`, `llm-2` and so on."""
        workers = self.llm.workers if self.llm is not None else ()
        return {"llm" if len(workers) == 1 else f"llm-{i}": worker for i, worker in enumerate(workers, 1)}

    @property
    def models(self) -> dict[str, str]:
        """Model ids that the processes load, each with the dotted path that first names it."""
        found: dict[str, str] = {}
        for where, model in self._named_models():
            found.setdefault(model, where)
        return found

    @property
    def key_files(self) -> dict[str, tuple[Path, bool]]:
        """The files of API keys and of a TURN server's password, by the dotted path that names them; True for keys."""
        return {where: (path, is_key) for where, path, is_key in self._named_files() if path is not None}

    def _named_files(self) -> Iterator[tuple[str, Path | None, bool]]:
        for _, where, edge in self.edges:
            yield f"{where}.api_key_file", edge.api_key_file, True
        if self.voice is not None:
            yield "voice.service_key_file", self.voice.service_key_file, True
            for i, server in enumerate(self.voice.webrtc.ice_servers):
                yield f"voice.webrtc.ice_servers[{i}].credential_file", server.credential_file, False
        for i, model in enumerate(self.router.models if self.router is not None else ()):
            for j, worker in enumerate(model.workers):
                yield f"router.models[{i}].workers[{j}].api_key_file", worker.api_key_file, True

    def _named_models(self) -> Iterator[tuple[str, str]]:
        if self.voice is not None:
            yield "voice.vad_model", self.voice.vad_model
            yield "voice.turn_model", self.voice.turn_model
        if self.stt is not None:
            for i, stt_model in enumerate(self.stt.models):
                yield f"stt.models[{i}].id", stt_model.id
        if self.tts_engine is not None:
            for i, voice in enumerate(self.tts_engine.voices):
                yield f"tts_engine.voices[{i}].model", voice.model
            yield "tts_engine.lexicon", self.tts_engine.lexicon
        if self.llm is not None:
            for i, worker in enumerate(self.llm.workers):
                yield f"llm.workers[{i}].weights", worker.weights


def read_profile(path: Path, catalogue: Catalogue, *, reads_keys: bool = False) -> Profile:
    """With `reads_keys` the key files are tried as well, which those who start the profile want.

    Raises: ConfigError, with file, line and dotted path.
    """
    document = read(path)
    profile = document.parse(Profile)
    if not profile.edges:
        raise ConfigError(f"{path}: no section in it, so there is nothing to start")
    _check_models(document, profile, catalogue)
    _check_ports(document, profile)
    _check_addresses(document, profile)
    if reads_keys:
        _check_keys(document, profile)
    return profile


def read_key_file(path: Path, *, is_key: bool) -> str:
    """Of `Profile.key_files`. Raises: ConfigError."""
    return read_key(path) if is_key else read_secret(path, "TURN password")


def nearest_profile(path: Path) -> str:
    """A hint for somebody who named a file that is not there."""
    folders = filter(os.path.isdir, (path.parent, PROFILES))
    known = {each.name: each for folder in folders for each in sorted(folder.glob("*.yaml"))}
    names = {name: name for name in known} | {Path(name).stem: name for name in known}
    close = nearest(path.name, names)
    listed = ", ".join(str(each) for each in known.values()) or "none"
    return f"did you mean {known[names[close]]}?" if close else f"profiles that are there: {listed}"


def log_folder(cache: Path, profile: Profile) -> Path:
    """`logs`, or `logs-PORT` where the first port is not the default profile's: stacks side by side share no file."""
    _, _, edge = profile.edges[0]
    return cache / ("logs" if edge.port == FIRST_PORT else f"logs-{edge.port}")


def specs(profile: Profile, path: Path) -> list[Spec]:
    """The processes of the profile in `path`, with what each needs before it starts."""
    names = [name for name, _, _ in profile.edges]
    workers = profile.llm_workers
    numbers = {name: str(number) for number, name in enumerate(workers, 1)}
    needs = {
        "router": tuple(workers),
        "voice": ("stt", "tts_engine", *(("router",) if "router" in names else tuple(workers))),
    }
    found = []
    for name, _, edge in profile.edges:
        package, *options = (name,) if name not in numbers else ("llm", "--worker", numbers[name])
        threads = ONE_BLAS_THREAD if name in workers else ONE_THREAD
        found.append(
            Spec(
                name=name,
                command=(sys.executable, "-m", package, "--profile", str(path.resolve()), *options),
                addresses=((edge.host, edge.port),),
                needs=tuple(other for other in needs.get(name, ()) if other in names),
                environment={"PYTHONUNBUFFERED": "1", **threads},
                drain_timeout_s=edge.drain_timeout_s,
            )
        )
    return found


def _fail(document: Document, where: str, problem: str) -> ConfigError:
    section = where.partition(".")[0]
    line = document.lines.get(where, document.lines.get(section, 1))
    return ConfigError(f"{document.path}:{line}: {where}: {problem}")


def _check_models(document: Document, profile: Profile, catalogue: Catalogue) -> None:
    for model, where in profile.models.items():
        try:
            catalogue.model(model)
        except ConfigError as error:
            raise _fail(document, where, str(error)) from None


def _check_keys(document: Document, profile: Profile) -> None:
    for where, (path, is_key) in profile.key_files.items():
        try:
            read_key_file(path, is_key=is_key)
        except ConfigError as error:
            raise _fail(document, where, str(error)) from None


def _check_ports(document: Document, profile: Profile) -> None:
    taken: dict[int, str] = {}
    for _, where, edge in profile.edges:
        if edge.port == 0:
            raise _fail(document, f"{where}.port", "port 0 means any, but the others must know it: choose one")
        if edge.port in taken:
            raise _fail(document, f"{where}.port", f"{taken[edge.port]} has port {edge.port} already")
        taken[edge.port] = where


def _check_addresses(document: Document, profile: Profile) -> None:
    """A URL to this machine must lead to the process that is started here for it, and that must have the model."""
    if (voice := profile.voice) is not None:
        _check_url(document, profile, "voice.stt_url", voice.stt_url, "stt")
        _check_url(document, profile, "voice.tts_url", voice.tts_url, "tts_engine")
        _check_url(document, profile, "voice.llm_url", voice.llm_url, "llm" if profile.router is None else "router")
    if profile.router is None:
        return
    ids = [model.id for model in profile.router.models]
    if voice is not None and voice.llm_model not in ids:
        raise _fail(document, "voice.llm_model", f"the router has no '{voice.llm_model}'; it has: {', '.join(ids)}")
    served = {worker.edge.port: worker.id for worker in profile.llm_workers.values()}
    for i, model in enumerate(profile.router.models):
        for j, worker in enumerate(model.workers):
            where = f"router.models[{i}].workers[{j}].url"
            there = served.get(_port_here(worker.url))
            if there is not None and there != (worker.model or model.id):
                raise _fail(document, where, f"the worker there serves '{there}', not '{worker.model or model.id}'")


def _check_url(document: Document, profile: Profile, where: str, url: str, owner: str) -> None:
    owners = profile.llm_workers if owner == "llm" else (owner,)
    ports = [edge.port for name, _, edge in profile.edges if name in owners]
    port = _port_here(url)
    if ports and port != ELSEWHERE and port not in ports:
        raise _fail(document, where, f"leads to port {port}, but {owner} listens on {ports[0]}")


def _port_here(url: str) -> int:
    """The port of a URL to this machine, `ELSEWHERE` for another machine's."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    return port if is_loopback(parts.hostname or "") else ELSEWHERE
