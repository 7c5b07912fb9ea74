"""The scheduler with KV played by strings: every token must find, at its place, exactly what precedes it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from llm.blocks import BLOCK_TOKENS, BlockPool, root_hash
from llm.sampling import Sampler, Sampling
from llm.scheduler import Scheduler
from llm.sequence import Generation, Sequence
from llm.stops import TextStream

NUM_BLOCKS = 12
ROOT = root_hash("m")
prompts = st.lists(st.integers(0, 1), min_size=1, max_size=5 * BLOCK_TOKENS)


def sequence_of(prompt: tuple[int, ...], max_tokens: int, deadline_s: float | None = None) -> Sequence:
    return Sequence(
        generation=Generation(prompt, max_tokens, deadline_s=deadline_s),
        emit=lambda event: None,
        arrived_s=0.0,
        parent=ROOT,
        sampler=Sampler(Sampling(), prompt),
        output=TextStream(),
        tokens=list(prompt),
    )


class Cache:
    """In place of KV: at each place of a block, all tokens up to and with the one computed there."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, int], tuple[int, ...]] = {}

    def copy_block(self, source: int, target: int) -> None:
        for i in range(BLOCK_TOKENS):
            if (source, i) in self.places:
                self.places[target, i] = self.places[source, i]

    def check(self, sequence: Sequence) -> None:
        for i in range(sequence.num_computed):
            place = (sequence.blocks[i // BLOCK_TOKENS], i % BLOCK_TOKENS)
            assert self.places[place] == tuple(sequence.tokens[: i + 1])


class Machine(RuleBasedStateMachine):
    sequences = Bundle("sequences")

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.pool = BlockPool(NUM_BLOCKS)
        self.scheduler = Scheduler(self.pool, ROOT, max_running=3, chunk_tokens=24, copy_block=self.cache.copy_block)

    @rule(target=sequences, prompt=prompts, max_tokens=st.integers(0, 40))
    def add(self, prompt: list[int], max_tokens: int) -> Sequence:
        sequence = sequence_of(tuple(prompt), max_tokens)
        self.scheduler.add(sequence)
        return sequence

    @rule(target=sequences, sequence=sequences, more=prompts)
    def continue_with(self, sequence: Sequence, more: list[int]) -> Sequence:
        """The next turn of the same conversation."""
        return self.add((list(sequence.tokens) + more)[: 8 * BLOCK_TOKENS], 4)

    @rule(token=st.integers(0, 1))
    def step(self, token: int) -> None:
        chunks = self.scheduler.next_batch()
        assert chunks or not (self.scheduler.waiting or self.scheduler.running)
        assert sum(c.count for c in chunks if not c.sequence.num_generated) <= 24
        for chunk in chunks:
            sequence = chunk.sequence
            for i in range(sequence.num_computed, chunk.stop):
                place = (sequence.blocks[i // BLOCK_TOKENS], i % BLOCK_TOKENS)
                self.cache.places[place] = tuple(sequence.tokens[: i + 1])
            samples = chunk.samples
            self.scheduler.computed(chunk)
            if samples:
                sequence.tokens.append(token)
            is_computed = sequence.num_computed >= len(sequence.generation.prompt)
            if is_computed and sequence.num_generated == sequence.generation.max_tokens:
                self.scheduler.end(sequence)

    @rule(sequence=consumes(sequences))
    def abort(self, sequence: Sequence) -> None:
        if sequence in self.scheduler.running or sequence in self.scheduler.waiting:
            self.scheduler.end(sequence)

    @invariant()
    def every_token_sees_exactly_its_own_past(self) -> None:
        for sequence in self.scheduler.running:
            self.cache.check(sequence)

    @invariant()
    def no_block_is_lost_and_nobody_writes_into_anothers(self) -> None:
        self.scheduler.audit()
        owners: dict[int, int] = {}
        for sequence in self.scheduler.running:
            for block in sequence.blocks[sequence.num_published // BLOCK_TOKENS :]:
                owners[block] = owners.get(block, 0) + 1
        assert all(count == 1 for count in owners.values())


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMachine = pytest.mark.slow(Machine.TestCase)


def scheduler_of(num_blocks: int = NUM_BLOCKS, max_running: int = 2) -> Scheduler:
    return Scheduler(
        BlockPool(num_blocks), ROOT, max_running=max_running, chunk_tokens=32, copy_block=Cache().copy_block
    )


def added(scheduler: Scheduler, prompt: Iterable[int], max_tokens: int = 1) -> Sequence:
    sequence = sequence_of(tuple(prompt), max_tokens)
    scheduler.add(sequence)
    return sequence


def step(scheduler: Scheduler) -> list[tuple[Sequence, int]]:
    chunks = scheduler.next_batch()
    for chunk in chunks:
        samples = chunk.samples
        scheduler.computed(chunk)
        if samples:
            chunk.sequence.tokens.append(7)
    return [(chunk.sequence, chunk.count) for chunk in chunks]


def prefilled(scheduler: Scheduler, prompt: Iterable[int]) -> Sequence:
    """Computed and ended."""
    sequence = added(scheduler, prompt, max_tokens=0)
    while sequence.num_computed < len(sequence.generation.prompt):
        step(scheduler)
    scheduler.end(sequence)
    return sequence


def test_a_long_prompt_is_cut_into_chunks():
    scheduler = scheduler_of()
    sequence = added(scheduler, range(80))

    assert [step(scheduler) for _ in range(3)] == [[(sequence, 32)], [(sequence, 32)], [(sequence, 16)]]


def test_a_running_answer_goes_on_beside_anothers_prompt():
    scheduler = scheduler_of()
    answering = added(scheduler, range(8), max_tokens=9)
    step(scheduler)
    asking = added(scheduler, range(100, 150))

    assert step(scheduler) == [(answering, 1), (asking, 32)]
    assert step(scheduler) == [(answering, 1), (asking, 18)]


def test_short_prompts_share_a_step():
    scheduler = scheduler_of()
    first, second = added(scheduler, range(20)), added(scheduler, range(50, 70))

    assert step(scheduler) == [(first, 20), (second, 12)]


def test_a_prompt_that_was_prefilled_costs_one_token():
    scheduler = scheduler_of()
    prefilled(scheduler, range(45))
    sequence = added(scheduler, range(45))

    assert step(scheduler) == [(sequence, 1)]
    assert sequence.num_cached == 44


def test_the_next_turn_computes_only_what_is_new():
    scheduler = scheduler_of()
    first = added(scheduler, range(20), max_tokens=3)
    for _ in range(3):
        step(scheduler)
    scheduler.end(first)
    second = added(scheduler, [*range(20), 7, 7, 7, 1, 2])
    step(scheduler)

    assert second.num_cached == 22  # the last token generated was never an input


def test_conversations_share_the_blocks_of_their_system_prompt():
    scheduler = scheduler_of()
    first, second = added(scheduler, range(32), 9), added(scheduler, [*range(32), 1], 9)
    step(scheduler)
    scheduler.end(second)
    second = added(scheduler, [*range(32), 1], 9)
    step(scheduler)

    assert second.blocks[:2] == first.blocks[:2]
    assert second.num_cached == 32


@pytest.mark.parametrize("branch", [20, 35, 44], ids=["in a full block", "in the partial one", "at its last token"])
def test_a_conversation_that_branches_off_leaves_the_other_what_it_had(branch: int):
    scheduler = scheduler_of()
    prefilled(scheduler, range(45))
    other = added(scheduler, [*range(branch), *[99] * 20])
    step(scheduler)
    scheduler.end(other)
    again = added(scheduler, range(45))
    step(scheduler)

    assert other.num_cached == branch
    assert again.num_cached == 44


def test_what_branches_off_lies_side_by_side_with_what_it_shares():
    scheduler = scheduler_of()
    prefilled(scheduler, range(24))
    other = added(scheduler, [*range(20), *[99] * 20])
    step(scheduler)

    assert other.num_cached == 20
    assert other.blocks == list(range(other.blocks[0], other.blocks[0] + len(other.blocks)))


def test_blocks_of_one_sequence_lie_side_by_side_when_it_is_alone():
    scheduler = scheduler_of()
    prefilled(scheduler, range(45))
    sequence = added(scheduler, range(70))
    step(scheduler)

    assert sequence.blocks == list(range(sequence.blocks[0], sequence.blocks[0] + 5))


def test_a_request_waits_until_blocks_are_free():
    scheduler = scheduler_of(num_blocks=4)
    first, second = added(scheduler, range(30), 2), added(scheduler, range(50, 80), 10)

    assert step(scheduler) == [(first, 30)]
    assert list(scheduler.waiting) == [second]
    scheduler.end(first)
    assert step(scheduler) == [(second, 30)]


def test_only_what_has_no_token_yet_expires():
    scheduler = scheduler_of(max_running=1)
    answering = sequence_of((1, 2), 5, deadline_s=1.0)
    waiting = sequence_of((1, 2), 5, deadline_s=1.0)
    patient = sequence_of((1, 2), 5, deadline_s=9.0)
    for each in (answering, waiting, patient):
        scheduler.add(each)
    step(scheduler)

    assert scheduler.expired(now=1.0) == [waiting]
    scheduler.end(waiting)
    assert scheduler.expired(now=1.0) == []
