"""Which load is offered: flags in, the schedule of calls and its description out. Pure but for argparse.

Open loop (`--poisson`, `--ramp`, `--spike`, `--day`): calls begin at times drawn before the run, whatever the server
does, so it shows what a queue does to callers. Fixed (`--calls`, `--at-once`): a call begins when one has ended, so a
slow server is offered less; right for one call after another and for the most that run at once, and for nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from load import arrivals
from load.errors import LoadError
from load.report.document import Plan

STAGGER_S = 0.25  # between the first calls of a fixed load; less than a turn takes, so that all soon run
MAX_CALLS = 100_000  # a run keeps its results in memory
MAX_AT_ONCE = 1000  # a socket each; Linux gives a process 1024 descriptors
MAX_DURATION_S = 86_400.0


@dataclass(frozen=True)
class Open:
    """Calls begin at these times, seconds from the start of the run, ascending."""

    times_s: tuple[float, ...]


@dataclass(frozen=True)
class Fixed:
    """So many calls at once: one begins when one has ended, until `num_calls` have begun or `duration_s` is over."""

    num_concurrent: int
    num_calls: int | None
    duration_s: float | None
    stagger_s: float = STAGGER_S

    def first_times_s(self, seed: int) -> tuple[float, ...]:
        """When the first `num_concurrent` begin: apart by about `stagger_s`, so that they do not march in step."""
        shifts = np.random.default_rng(seed).random(self.num_concurrent)
        return (0.0, *(self.stagger_s * float(i + shifts[i]) for i in range(1, self.num_concurrent)))


Offered: TypeAlias = Open | Fixed


def add_arrival_flags(parser: argparse.ArgumentParser) -> None:
    """The command adds `--seed` itself."""
    group = parser.add_argument_group(
        "load",
        "how many calls, and when they begin (default: one call, or each scenario once);"
        " --for is needed with --poisson, --ramp, --day",
    )
    group.add_argument("--calls", type=int, metavar="N", help="calls in all (default: as many as at once)")
    group.add_argument("--at-once", type=int, metavar="K", help="calls at the same time (default: 1)")
    group.add_argument("--poisson", type=float, metavar="RATE", help="independent callers, RATE a minute on average")
    group.add_argument("--ramp", metavar="FROM:TO", help="the same, from FROM to TO calls a minute")
    group.add_argument("--spike", type=int, metavar="N", help="N calls that begin --within a few seconds")
    group.add_argument("--day", type=int, metavar="N", help="about N calls, over --for as a call centre's day has them")
    group.add_argument("--within", type=float, metavar="S", help="seconds of a --spike")
    group.add_argument("--for", type=float, dest="for_s", metavar="S", help="seconds in which calls begin")


def says_how_many(arguments: argparse.Namespace) -> bool:
    """Whether any of the flags above was given."""
    return any(vars(arguments)[name] is not None for name in ("calls", "at_once", "for_s", *_SCHEDULED))


def offered(arguments: argparse.Namespace) -> tuple[Offered, Plan]:
    """From the flags above and `arguments.seed`.

    Raises: LoadError.
    """
    kinds = [name for name in _SCHEDULED if vars(arguments)[name] is not None]
    if len(kinds) > 1:
        raise LoadError(f"--{kinds[0]} and --{kinds[1]} are two loads", "give one of them")
    if not kinds:
        return _fixed(arguments)
    for name in ("calls", "at_once"):
        if vars(arguments)[name] is not None:
            raise LoadError(f"{_flag(name)} does not go with --{kinds[0]}, which says itself how many calls begin")
    made, plan = _SCHEDULED[kinds[0]](arguments)
    if not made:
        raise LoadError(
            f"--{kinds[0]}: not one call begins in that time", "raise the rate, the time, or try another --seed"
        )
    return Open(tuple(made)), Plan(kinds[0], plan, num_planned=len(made))


def _fixed(arguments: argparse.Namespace) -> tuple[Fixed, Plan]:
    _refuse(arguments, "within", "a fixed load")
    at_once = 1 if arguments.at_once is None else _count(arguments, "at_once", MAX_AT_ONCE)
    duration_s = None if arguments.for_s is None else _seconds(arguments, "for_s")
    num_calls = None if arguments.calls is None else _count(arguments, "calls", MAX_CALLS)
    if num_calls is None and duration_s is None:
        num_calls = at_once
    if num_calls is not None and num_calls < at_once:
        raise LoadError(f"--at-once {at_once} is more than --calls {num_calls}")
    numbers = {"num_concurrent": float(at_once), "num_calls": num_calls, "duration_s": duration_s}
    parameters = {name: float(value) for name, value in numbers.items() if value is not None}
    return Fixed(at_once, num_calls, duration_s), Plan("fixed", parameters, num_planned=num_calls or 0)


_Drawn: TypeAlias = tuple[Sequence[float], dict[str, float]]


def _poisson(arguments: argparse.Namespace) -> _Drawn:
    duration_s = _duration(arguments, "poisson")
    per_minute = _rate("--poisson", arguments.poisson, duration_s)
    times = arrivals.poisson(per_minute / 60, duration_s, arguments.seed)
    return times, {"calls_per_minute": per_minute, "duration_s": duration_s}


def _ramp(arguments: argparse.Namespace) -> _Drawn:
    duration_s = _duration(arguments, "ramp")
    try:
        from_rate, to_rate = (float(part) for part in arguments.ramp.split(":"))
    except ValueError:
        raise LoadError(
            f"--ramp must be FROM:TO in calls a minute, got {arguments.ramp!r:.40}", "such as --ramp 0:20"
        ) from None
    rates = [_rate("--ramp", rate, duration_s) for rate in (from_rate, to_rate)]
    times = arrivals.ramp(rates[0] / 60, rates[1] / 60, duration_s, arguments.seed)
    return times, {
        "from_calls_per_minute": from_rate,
        "to_calls_per_minute": to_rate,
        "duration_s": duration_s,
    }


def _spike(arguments: argparse.Namespace) -> _Drawn:
    _refuse(arguments, "for_s", "--spike")
    if arguments.within is None:
        raise LoadError("--spike needs --within: the seconds in which its calls begin")
    width_s = _seconds(arguments, "within")
    num_calls = _count(arguments, "spike", MAX_CALLS)
    return arrivals.spike(num_calls, 0.0, width_s, arguments.seed), {"num_calls": num_calls, "width_s": width_s}


def _day(arguments: argparse.Namespace) -> _Drawn:
    duration_s = _duration(arguments, "day")
    num_calls = _count(arguments, "day", MAX_CALLS)
    return arrivals.day(num_calls, duration_s, arguments.seed), {"mean_calls": num_calls, "duration_s": duration_s}


_SCHEDULED: dict[str, Callable[[argparse.Namespace], _Drawn]] = {
    "poisson": _poisson,
    "ramp": _ramp,
    "spike": _spike,
    "day": _day,
}


def _duration(arguments: argparse.Namespace, kind: str) -> float:
    _refuse(arguments, "within", f"--{kind}")
    if arguments.for_s is None:
        raise LoadError(f"--{kind} needs --for: the seconds in which calls begin")
    return _seconds(arguments, "for_s")


def _refuse(arguments: argparse.Namespace, name: str, kind: str) -> None:
    if vars(arguments)[name] is not None:
        raise LoadError(f"{_flag(name)} does not go with {kind}")


def _count(arguments: argparse.Namespace, name: str, most: int) -> int:
    value: int = vars(arguments)[name]
    if not 1 <= value <= most:
        raise LoadError(f"{_flag(name)} must be 1 to {most}, got {value}")
    return value


def _seconds(arguments: argparse.Namespace, name: str) -> float:
    value: float = vars(arguments)[name]
    if not 0 < value <= MAX_DURATION_S:
        raise LoadError(f"{_flag(name)} must be above 0 and at most {MAX_DURATION_S:g} seconds, got {value:g}")
    return value


def _rate(flag: str, per_minute: float, duration_s: float) -> float:
    if not 0 <= per_minute < float("inf"):
        raise LoadError(f"{flag} must be 0 or more calls a minute, got {per_minute:g}")
    if per_minute * duration_s / 60 > MAX_CALLS:
        raise LoadError(f"{flag} {per_minute:g} a minute for {duration_s:g} s is more than {MAX_CALLS} calls")
    return per_minute


def _flag(name: str) -> str:
    return "--for" if name == "for_s" else f"--{name.replace('_', '-')}"
