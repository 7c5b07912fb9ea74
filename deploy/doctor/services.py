"""The processes of the profile: are their ports free, or do they run, and as the profile says? And the services that
the profile expects elsewhere: do they answer? Pure; `deploy.doctor.read_services` asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.doctor.findings import Finding
from deploy.ports import Owner, Up


@dataclass(frozen=True)
class Answer:
    """To a GET of /health; `status` is None and `error` says why when there was none."""

    status: int | None
    body: Mapping[str, object] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Listener:
    """A process of the profile and what is at its address now.

    `service` and `model` are what its /health says of itself when it is ours. `newer`: what of its profile and code was
    changed after it started, empty for nothing.
    """

    name: str
    where: str
    host: str
    port: int
    service: str
    model: str | None = None
    bind_error: str = ""
    is_taken: bool = False
    owner: Owner | None = None
    answer: Answer | None = None
    newer: str = ""

    @property
    def is_ours(self) -> bool:
        body = self.answer.body if self.answer is not None else {}
        return body.get("service") == self.service and self.model in (None, body.get("model"))


@dataclass(frozen=True)
class Elsewhere:
    """A service that the profile names and does not start; `key` is where it names it."""

    key: str
    url: str
    answer: Answer


def check_services(
    listeners: Sequence[Listener],
    elsewhere: Sequence[Elsewhere],
    up: str,
    doctor: str,
    profile: Path,
    logs: Path,
) -> Iterator[Finding]:
    """`up`: the command that starts the profile; `doctor`: the one that looks again."""
    num_running = sum(listener.is_ours for listener in listeners)
    supervisor = _supervisor(listeners, profile)
    for listener in listeners:
        if supervisor is not None and not listener.is_taken and not listener.bind_error:
            yield _restarting(listener, supervisor, doctor, logs)
        else:
            yield _listener(listener, up, profile, logs, others_run=num_running > 0)
    for service in elsewhere:
        yield _elsewhere(service)


def _supervisor(listeners: Sequence[Listener], profile: Path) -> Up | None:
    """The `offhook up` of this very profile, where its processes are seen."""
    owners = [listener.owner for listener in listeners if listener.is_ours]
    above = [owner.up for owner in owners if owner is not None and owner.up is not None]
    return next((up for up in above if up.profile == profile.resolve()), None)


def _restarting(it: Listener, supervisor: Up, doctor: str, logs: Path) -> Finding:
    found = f"does not listen on {it.host}:{it.port}; offhook up (pid {supervisor.pid}) starts it"
    mend = f"look again in a moment: {doctor}; its log: {logs / (it.name + '.log')}"
    return Finding("services", it.name, "warning", found, mend)


def _listener(it: Listener, up: str, profile: Path, logs: Path, *, others_run: bool) -> Finding:
    address = f"{it.host}:{it.port}"
    if it.is_ours:
        return _running(it, up, profile)
    if it.is_taken:
        return _taken(it, logs)
    if it.bind_error:
        mend = f"profile: {it.where}.host: an address of this machine; {it.where}.port: above 1023"
        return Finding("services", it.name, "problem", f"cannot listen on {address}: {it.bind_error}", mend)
    if others_run:
        mend = f"see {logs / (it.name + '.log')}; end what runs, then: {up}"
        return Finding("services", it.name, "warning", f"does not run, though others do; {address} is free", mend)
    return Finding("services", it.name, "ok", f"does not run; {address} is free")


def _running(it: Listener, up: str, profile: Path) -> Finding:
    assert it.answer is not None
    above = it.owner.up if it.owner is not None else None
    pid = f" (pid {it.owner.pid})" if it.owner is not None else ""
    found = f"{it.answer.body.get('status')} on {it.host}:{it.port}{pid}, {it.answer.body.get('active')} active"
    again = f"{f'kill {above.pid}' if above is not None else 'end it'}, then: {up}"
    if it.answer.status != 200:
        mend = f"wait until its work is done, then: {up}"
        return Finding("services", it.name, "warning", f"{found}; it takes no new work", mend)
    if above is not None and above.profile != profile.resolve():
        return Finding("services", it.name, "warning", f"{found}; of another profile, {above.profile}", again)
    if it.newer:
        return Finding("services", it.name, "warning", f"{found}; it started before {it.newer} was changed", again)
    return Finding("services", it.name, "ok", found)


def _taken(it: Listener, logs: Path) -> Finding:
    who = str(it.owner) if it.owner is not None else "a process that cannot be seen from here"
    if it.owner is not None and it.owner.up is not None:
        found = f"port {it.port} is taken by {who} of offhook up (pid {it.owner.up.pid}), profile {it.owner.up.profile}"
        found += "; its /health is not that of " + it.name
        return Finding("services", it.name, "problem", found, f"kill {it.owner.up.pid}; its logs are in {logs}")
    mend = f"kill {it.owner.pid}" if it.owner is not None else "end it"
    mend += f", or profile: {it.where}.port: another one"
    return Finding("services", it.name, "problem", f"port {it.port} is taken by {who}", mend)


def _elsewhere(service: Elsewhere) -> Finding:
    answer = service.answer
    if answer.status == 200:
        return Finding("services", service.key, "ok", f"{service.url} answers")
    mend = f"start it there, or profile: {service.key}: its right address"
    if answer.status is None:
        return Finding("services", service.key, "problem", f"{service.url} does not answer: {answer.error}", mend)
    if answer.body.get("status") == "draining":
        found = f"{service.url} is draining: it takes no new work"
        return Finding("services", service.key, "warning", found, "wait, or start it again there")
    return Finding("services", service.key, "problem", f"{service.url}/health answers {answer.status}", mend)
