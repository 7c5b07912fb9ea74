"""A scenario: what a caller does and what must be heard, as one strictly parsed YAML file. Pure but `read_scenario`.

A step is one name with its fields; one field may stand bare (`say: doctor/1`, `silence: 500`). The caller hears all the
time and speaks when a step says so; a step begins when the one before it is over. What a step plays follows from the
scenario's seed, the call's number and the step's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from load.faults.parse import Fault, parse_fault, parse_faults
from load.speech.corpus import Corpus, Utterance, fillers_of
from load.speech.delivery import Delivery
from load.steps import (
    STEPS,
    Backchannel,
    BargeIn,
    Converse,
    Expect,
    FaultNow,
    HangUp,
    Key,
    Noise,
    Redial,
    Repeat,
    Say,
    Silence,
    Step,
    require_positive,
)
from wire.config import ConfigError, Document, line_of, read
from wire.strict import Invalid, nearest, parse

MAX_REPEATS = 1000
MAX_STEPS = 10_000  # as played: repetitions within repetitions multiply, and all audio is made before the run
MAX_CALLERS = 1000  # a socket each
MAX_LISTED = 20  # names in an error
NUM_TALKERS = 8  # utterances that babble is made of

Transport: TypeAlias = Literal["websocket", "webrtc", "realtime", "pipecat", "twilio"]


HAVE_KEYS: frozenset[Transport] = frozenset({"websocket", "webrtc"})


@dataclass(frozen=True)
class Echo:
    """The caller's microphone hears the agent, `delay_ms` late and `level_db` softer."""

    level_db: float = -30.0
    delay_ms: float = 150.0

    def __post_init__(self) -> None:
        if not -80 <= self.level_db <= 0:
            raise Invalid("level_db", f"must be -80 to 0, got {self.level_db}")
        require_positive(delay_ms=self.delay_ms)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Everything but the steps. `num_callers` play them at once, of whom `num_refused` are turned away."""

    name: str
    about: str
    seed: int = 0
    transports: tuple[Transport, ...] = ()  # where it makes sense; none named: everywhere
    num_callers: int = 1
    num_refused: int = 0
    greeting: bool = False  # the agent speaks first
    sends_played: bool = True  # the caller tells how far it has played
    caller: Delivery = field(default_factory=Delivery)
    echo: Echo | None = None
    limit_ms: float = 300_000.0  # a call that takes longer has failed

    def __post_init__(self) -> None:
        require_positive(limit_ms=self.limit_ms)
        if not self.about.strip():
            raise Invalid("about", "must not be empty")
        if not 0 <= self.seed < 2**63:
            raise Invalid("seed", f"must be 0 to 2**63, got {self.seed}")
        if not 0 <= self.num_refused < self.num_callers:
            raise ValueError("needs 0 <= num_refused < num_callers")
        if self.num_callers > MAX_CALLERS:
            raise Invalid("num_callers", f"must be at most {MAX_CALLERS}, got {self.num_callers}")


@dataclass(frozen=True, kw_only=True)
class Scenario(Setting):
    steps: tuple[Step, ...]
    faults: tuple[Fault, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def flat(self) -> Iterator[Step]:
        """Steps in the order they are played, repetitions once."""
        return _flat(self.steps)

    @property
    def every_fault(self) -> tuple[Fault, ...]:
        """From the start or later."""
        return (*self.faults, *(step.fault for step in self.flat if isinstance(step, FaultNow)))

    def line_of(self, where: str) -> int | None:
        """In its file, of a place such as `steps[3].expect`; none for what does not stand there."""
        return line_of(self.lines, where) if where.partition("[")[0] in self.lines else None


@dataclass(frozen=True, kw_only=True)
class _File(Setting):
    """Steps and faults are told apart by their names, which strict parsing by type cannot do."""

    steps: tuple[object, ...]
    faults: tuple[object, ...] = ()


@dataclass(frozen=True)
class _Repetition:
    times: int
    steps: tuple[object, ...]


def parse_scenario(document: Document, corpus: Corpus) -> Scenario:
    """Raises: ConfigError, with file, line and dotted path."""
    try:
        file = parse(_File, document.value)
        faults = parse_faults(file.faults)
        steps = _parse_steps(file.steps, "steps", corpus)
        _check_order(steps, "steps", is_hung_up=False)
        _check_transports(steps, file.transports)
        if (num_steps := _num_played(steps)) > MAX_STEPS:
            raise Invalid("steps", f"with repetitions there are {num_steps}; at most {MAX_STEPS}")
    except Invalid as error:
        raise ConfigError(f"{document.path}:{line_of(document.lines, error.where)}: {error}") from None
    return Scenario(**{**vars(file), "steps": steps, "faults": faults, "lines": document.lines})


def read_scenario(path: Path, corpus: Corpus) -> Scenario:
    """Raises: ConfigError."""
    return parse_scenario(read(path), corpus)


def spoken(scenario: Scenario, corpus: Corpus) -> list[Utterance]:
    """Everything whose audio the scenario needs, each once: what is said, fillers, and who babbles.

    Raises: LoadError for fillers that nobody recorded.
    """
    steps = list(scenario.flat)
    found: dict[str, Utterance] = {}
    for step in steps:
        if isinstance(step, Converse):
            found |= {turn.name: turn for turn in corpus.dialogue(step.dialogue).turns}
        elif isinstance(step, Say | BargeIn | Backchannel):
            found[step.utterance] = corpus.utterance(step.utterance)
    spoken_in = (step.delivery for step in steps if isinstance(step, Say | BargeIn | Backchannel | Converse))
    deliveries = [scenario.caller, *(each for each in spoken_in if each is not None)]
    if any(delivery.num_fillers for delivery in deliveries):
        found |= {filler.name: filler for filler in fillers_of(corpus)}
    behind = [delivery.background.kind for delivery in deliveries if delivery.background is not None]
    if "babble" in (*behind, *(step.kind for step in steps if isinstance(step, Noise))):
        found |= {utterance.name: utterance for utterance in talkers(corpus)}
    return list(found.values())


def talkers(corpus: Corpus) -> list[Utterance]:
    """Those whose voices make babble: what callers open with, or the longest of a corpus without dialogues."""
    openings = [dialogue.turns[0] for dialogue in corpus.dialogues]
    longest = sorted(corpus.utterances.values(), key=lambda utterance: -len(utterance.text))
    return (openings or longest)[:NUM_TALKERS]


def _parse_steps(values: object, where: str, corpus: Corpus) -> tuple[Step, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise Invalid(where, "expected a list of steps")
    return tuple(_parse_step(value, f"{where}[{i}]", corpus) for i, value in enumerate(values))


def _parse_step(value: object, where: str, corpus: Corpus) -> Step:
    name, given = _named(value, where)
    kinds = {kind.NAME: kind for kind in STEPS}
    if name not in kinds:
        raise Invalid(f"{where}.{name}", f"unknown step; {_hint(name, kinds)}")
    kind, where = kinds[name], f"{where}.{name}"
    if kind is Repeat:
        return _parse_repeat(given, where, corpus)
    if kind is FaultNow:
        return FaultNow(parse_fault(given, where))
    if given is not None and not isinstance(given, Mapping):
        given = {kind.SHORT: given}
    step = cast(Step, parse(cast(type[Any], kind), given or {}, where))
    if isinstance(step, Converse):
        _check_known(step.dialogue, [each.name for each in corpus.dialogues], f"{where}.dialogue", "dialogue")
    elif isinstance(step, Say | BargeIn | Backchannel):
        _check_known(step.utterance, list(corpus.utterances), f"{where}.utterance", "utterance")
    return step


def _named(value: object, where: str) -> tuple[str, object]:
    if isinstance(value, str):
        return value, None
    if isinstance(value, Mapping) and len(value) == 1:
        [(name, given)] = value.items()
        return str(name), given
    raise Invalid(where, "a step is one name with its fields, such as `say: {utterance: doctor/1}`")


def _parse_repeat(given: object, where: str, corpus: Corpus) -> Repeat:
    fields = parse(_Repetition, given, where)
    if not 1 <= fields.times <= MAX_REPEATS:
        raise Invalid(f"{where}.times", f"must be 1 to {MAX_REPEATS}, got {fields.times}")
    return Repeat(fields.times, _parse_steps(fields.steps, f"{where}.steps", corpus))


def _check_known(name: str, known: list[str], where: str, what: str) -> None:
    if name not in known:
        raise Invalid(where, f"no {what} '{name}'; {_hint(name, known)}")


def _check_order(steps: tuple[Step, ...], where: str, *, is_hung_up: bool) -> bool:
    """After a hang-up there is nobody to speak with until a new call. Whether it ends hung up."""
    for i, step in enumerate(steps):
        at = f"{where}[{i}].{step.NAME}"
        if isinstance(step, Repeat):
            ends_hung_up = _check_order(step.steps, f"{at}.steps", is_hung_up=is_hung_up)
            if step.times > 1 and ends_hung_up != is_hung_up:
                _check_order(step.steps, f"{at}.steps", is_hung_up=ends_hung_up)
            is_hung_up = ends_hung_up
        elif isinstance(step, Redial):
            if not is_hung_up:
                raise Invalid(at, "the call before it must be over: hang_up first")
            is_hung_up = False
        elif isinstance(step, HangUp):
            if is_hung_up:
                raise Invalid(at, "there is no call any more: redial first")
            is_hung_up = True
        elif is_hung_up and not isinstance(step, Expect | FaultNow | Silence):
            raise Invalid(at, "there is no call any more: redial first")
    return is_hung_up


def _check_transports(steps: tuple[Step, ...], transports: Sequence[Transport]) -> None:
    if any(isinstance(step, Key) for step in _flat(steps)) and not set(transports or get_args(Transport)) <= HAVE_KEYS:
        raise Invalid("transports", f"`key` is for {' and '.join(sorted(HAVE_KEYS))}: name no other, and at least one")


def _flat(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Repeat):
            yield from _flat(step.steps)
        else:
            yield step


def _num_played(steps: tuple[Step, ...]) -> int:
    return sum(step.times * _num_played(step.steps) if isinstance(step, Repeat) else 1 for step in steps)


def _hint(name: str, known: Iterable[str]) -> str:
    listed = list(known)
    close = nearest(name, listed)
    return f"did you mean '{close}'?" if close else f"known: {', '.join(listed[:MAX_LISTED])}"
