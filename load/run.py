"""`offhook load run`: callers who hold conversations, or play scenarios, and a report of what they heard."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from load.callers import Callers
from load.errors import LoadError
from load.faults.command import faults_of
from load.faults.parse import BY_KIND
from load.faults.site import Site
from load.library import find
from load.offered import add_arrival_flags, offered, says_how_many
from load.recording_wav import make_folder, write_call
from load.report.document import Plan
from load.report.recording import Recording, add_result_flags, conclude, head_of, recording
from load.report.verdicts import verdict_table
from load.scenario import Scenario, spoken, talkers
from load.speech.cast import Cast
from load.speech.command import add_voice_flags, corpus_of, delivery_of, sounds_of
from load.speech.corpus import Corpus, Utterance, fillers_of
from load.speech.delivery import Delivery
from load.steps import Converse
from load.target import Target, add_target_flags, reached
from wire.strict import nearest

SWITCH_S = 0.0005  # between threads: measuring a call that has ended must not make those late that go on
VARIED = "varied"  # each caller otherwise
CONVERSATION_MS = 600_000.0  # longer, and something is wrong; long answers to eight turns take four minutes
THINKING_MS = 1000.0  # between the end of an answer and the caller's next words, in a conversation


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_target_flags(parser)
    add_arrival_flags(parser)
    add_caller_flags(parser)
    parser.add_argument(
        "--wav", type=Path, metavar="FOLDER", help="each call as a stereo file, and what was told in it (default: none)"
    )
    add_result_flags(parser, "calls")


def add_caller_flags(parser: argparse.ArgumentParser) -> None:
    """Who calls, what they say, and what befalls their calls."""
    parser.add_argument(
        "scenario", nargs="*", help="names or files, played in turn (default: the dialogues of the corpus)"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="YAML",
        help=f"on every call, such as '{{kind: loss, share: 0.03}}'; may be repeated; kinds: {', '.join(BY_KIND)}",
    )
    parser.add_argument(
        "--caller",
        metavar="YAML",
        help=f"how they speak, such as '{{speed: 1.2, pitch: 0.9}}', or '{VARIED}' (default: as the scenario says)",
    )
    add_voice_flags(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    if arguments.scenario and not says_how_many(arguments):
        arguments.calls, arguments.at_once = len(arguments.scenario), 1
    return asyncio.run(_run(arguments, console))


async def _run(arguments: argparse.Namespace, console: Console) -> int:
    load, plan = offered(arguments)
    script = script_of(arguments)
    async with reached(arguments) as target:
        callers = await callers_of(script, arguments, target)
        callers.rehearse(plan.num_planned or None)
        if arguments.wav is not None:
            make_folder(arguments.wav)
        try:
            with recording_of_calls(arguments, target, plan) as found:
                await callers.call(load, found)
                found.rest()
                with Progress(console=Console(stderr=True), transient=True) as progress:
                    task = progress.add_task("listening again", total=len(callers.acts))
                    await callers.listen_again(found, callers.played, lambda: progress.advance(task))
        finally:  # whatever ended the run
            if arguments.wav is not None:
                for act in callers.acts:
                    write_call(arguments.wav, act.record)
    status = conclude(found, arguments, console)
    assert found.run is not None
    if arguments.scenario and found.run.verdicts:
        console.print(verdict_table(found.run))
        status = status or int(not all(verdict.passed for verdict in found.run.verdicts))
    return status


@dataclass(frozen=True)
class Script:
    """What callers do and say. `utterances`: everything that needs audio."""

    scenarios: Sequence[Scenario]
    corpus: Corpus
    utterances: Sequence[Utterance]
    is_varied: bool


def script_of(arguments: argparse.Namespace) -> Script:
    """Raises: LoadError for what cannot be played, before anybody is called."""
    corpus = corpus_of(arguments)
    scenarios = _scenarios_of(arguments, corpus)
    _require_playable(scenarios, arguments)
    is_varied = arguments.caller == VARIED
    needed = [utterance for scenario in scenarios for utterance in spoken(scenario, corpus)]
    if is_varied:
        needed += [*fillers_of(corpus), *talkers(corpus)]
    return Script(scenarios, corpus, list({utterance.name: utterance for utterance in needed}.values()), is_varied)


async def callers_of(script: Script, arguments: argparse.Namespace, target: Target) -> Callers:
    """With every voice that they need, clean. Raises: LoadError."""
    speaker = {"voice_url": target.voice_url, "voice_key_file": target.voice_key_file}
    speaking = argparse.Namespace(**{**vars(arguments), **speaker})
    sounds = await sounds_of(speaking, script.utterances)
    cast = Cast(sounds, [utterance.name for utterance in talkers(script.corpus)], target.dial.rates_hz[0])
    return Callers(script.scenarios, script.corpus, cast, target, arguments.seed, is_varied=script.is_varied)


def _scenarios_of(arguments: argparse.Namespace, corpus: Corpus) -> list[Scenario]:
    """What is asked for, or a conversation for each dialogue. Raises: LoadError."""
    faults = tuple(faults_of(arguments.fault))
    caller = _delivery_of(arguments.caller)
    if arguments.scenario:
        found = [find(name, corpus) for name in arguments.scenario]
    else:
        if not corpus.dialogues:
            raise LoadError("there are no dialogues among the recordings", "name a scenario that says them")
        found = [
            Scenario(
                name=dialogue.name,
                about="a conversation",
                steps=(Converse(dialogue.name, THINKING_MS),),
                limit_ms=CONVERSATION_MS,
            )
            for dialogue in corpus.dialogues
        ]
    if caller is not None:
        found = [replace(scenario, caller=caller) for scenario in found]
    return [replace(scenario, faults=(*scenario.faults, *faults)) for scenario in found]


def _delivery_of(text: str | None) -> Delivery | None:
    """Raises: LoadError."""
    if text is None or text == VARIED:
        return None
    try:
        return delivery_of(text, "--caller")
    except LoadError:
        if nearest(text, [VARIED]) is None:
            raise
        raise LoadError(f"--caller: '{text}' is no way to speak", f"did you mean '{VARIED}'?") from None


def _require_playable(scenarios: Sequence[Scenario], arguments: argparse.Namespace) -> None:
    """Raises: LoadError for a scenario that cannot be played there."""
    for scenario in scenarios:
        if scenario.transports and arguments.transport not in scenario.transports:
            raise LoadError(
                f"{scenario.name} is for calls over {' or '.join(scenario.transports)}",
                f"choose with --transport {scenario.transports[0]}",
            )
        if arguments.start is None:
            Site().require(scenario.every_fault)


def recording_of_calls(arguments: argparse.Namespace, target: Target, plan: Plan) -> AbstractContextManager[Recording]:
    """For every command that calls; from now on threads switch fast."""
    not_recognised = "answers were not recognised: the first audible speech counts as the answer"
    head = head_of(
        arguments,
        "calls",
        target=target.dial.url,
        scenario=", ".join(arguments.scenario) or "conversations",
        transport=target.dial.transport,
        plan=plan,
        notes=(not_recognised,) if target.recogniser is None else (),
    )
    sys.setswitchinterval(SWITCH_S)
    return recording(arguments.json, head, "calls", shares_cores=target.shares_cores)
