"""Which sequences run, which blocks they own, what the next engine step computes. No tensors, no clock, no threads.

    waiting (first come, first served, bounded) -> prefilling, one chunk a step -> decoding, one token a step -> ended

A step is one batch: a token of every decoding sequence, and up to `chunk_tokens` of prompts, oldest first. All blocks
that a sequence can need are allocated when it starts, so that a running answer never fails for want of memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from llm.blocks import BLOCK_TOKENS, BlockHash, BlockPool, block_hash, chain, num_blocks_for
from llm.sequence import Sequence


@dataclass(frozen=True)
class Chunk:
    """The next `count` tokens of `sequence` to compute."""

    sequence: Sequence
    count: int

    @property
    def stop(self) -> int:
        return self.sequence.num_computed + self.count

    @property
    def samples(self) -> bool:
        """Whether the chunk's last token yields the sequence's next one."""
        return self.stop == len(self.sequence.tokens) and self.sequence.generation.max_tokens > 0


class Scheduler:
    """`copy_block(source, target)` copies a block's KV; called while a sequence starts."""

    def __init__(
        self,
        pool: BlockPool,
        root: BlockHash,
        *,
        max_running: int,
        chunk_tokens: int,
        copy_block: Callable[[int, int], None],
    ) -> None:
        self.pool = pool
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self._root = root
        self._max_running = max_running
        self._chunk_tokens = chunk_tokens
        self._copy_block = copy_block

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def expired(self, now: float) -> list[Sequence]:
        """Sequences without a first token whose deadline has passed."""
        return [s for s in (*self.waiting, *self.running) if not s.num_generated and _late(s, now)]

    def next_batch(self) -> list[Chunk]:
        while self.waiting and len(self.running) < self._max_running and self._start(self.waiting[0]):
            self.running.append(self.waiting.popleft())
        chunks = []
        budget = self._chunk_tokens
        for sequence in self.running:
            left = len(sequence.tokens) - sequence.num_computed
            assert left > 0
            if sequence.num_generated:
                assert left == 1
                chunks.append(Chunk(sequence, 1))
            elif budget:
                count = min(left, budget)
                chunks.append(Chunk(sequence, count))
                budget -= count
        return chunks

    def computed(self, chunk: Chunk) -> None:
        """The KV of `chunk` is written: publish the blocks it filled."""
        sequence = chunk.sequence
        sequence.num_computed = chunk.stop
        while sequence.num_computed - sequence.num_published >= BLOCK_TOKENS:
            start = sequence.num_published
            tokens = sequence.tokens[start : start + BLOCK_TOKENS]
            self.pool.publish(sequence.blocks[start // BLOCK_TOKENS], sequence.parent, tokens)
            sequence.parent = block_hash(sequence.parent, tokens)
            sequence.num_published += BLOCK_TOKENS

    def end(self, sequence: Sequence) -> None:
        """Free its blocks, whatever state it is in; what was computed can still be found."""
        if sequence not in self.running:
            self.waiting.remove(sequence)
            return
        self.running.remove(sequence)
        rest = sequence.tokens[sequence.num_published : sequence.num_computed]
        if rest:
            self.pool.publish(sequence.blocks[sequence.num_published // BLOCK_TOKENS], sequence.parent, rest)
        self.pool.free(sequence.blocks)
        sequence.blocks = []

    def audit(self) -> None:
        """Assert that no block is lost; cheap enough to run whenever the engine is idle."""
        self.pool.audit(sequence.blocks for sequence in self.running)
        assert not any(sequence.blocks for sequence in self.waiting)

    def _start(self, sequence: Sequence) -> bool:
        """Give `sequence` its blocks, the known start of its prompt among them; False when the pool is too full."""
        prompt = sequence.generation.prompt
        reusable = len(prompt) - 1  # the last token is computed in any case: its logits are wanted
        hashes = chain(self._root, prompt[:reusable])
        shared = self.pool.match(hashes)
        total = num_blocks_for(len(prompt) + sequence.generation.max_tokens)
        if not self.pool.can_allocate(total - len(shared), shared):
            return False
        sequence.num_cached = len(shared) * BLOCK_TOKENS
        sequence.parent = hashes[len(shared) - 1] if shared else self._root
        self.pool.share(shared)
        sequence.blocks = shared
        sequence.num_published = sequence.num_cached
        self._begin_block(sequence, prompt[sequence.num_cached : reusable])
        sequence.blocks = sequence.blocks + self.pool.allocate(total - len(sequence.blocks))
        sequence.num_computed = sequence.num_cached
        return True

    def _begin_block(self, sequence: Sequence, tokens: tuple[int, ...]) -> None:
        """Reuse a block that begins with some of `tokens`, when there is one."""
        start = self.pool.longest_start(sequence.parent, tokens)
        if start is None:
            return
        block, common = start
        if (elsewhere := self.pool.move(block, common)) is not None:
            self._copy_block(block, elsewhere)
        if not self.pool.take_over(block):
            source, block = block, self.pool.allocate(1)[0]
            self._copy_block(source, block)
        sequence.blocks = [*sequence.blocks, block]
        sequence.num_cached += common


def _late(sequence: Sequence, now: float) -> bool:
    deadline_s = sequence.generation.deadline_s
    return deadline_s is not None and deadline_s <= now
