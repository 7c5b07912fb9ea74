"""Which KV block holds which tokens: chained hashes, reference counts, reuse, eviction. Pure; knows no tensors.

A block holds the KV of `BLOCK_TOKENS` consecutive tokens. KV depends on every token before it, so a block is known by
the hash of (its parent's hash, its own tokens); two conversations with the same first tokens find the same blocks.

    allocate -> owned by one sequence, written -> publish -> found by match, shared -> free -> kept, unreferenced
             -> found again, or evicted (least recently freed first) by a later allocate

A sequence's last block is mostly partial. It is published too when the sequence ends, but never shared: whoever
continues it, or diverges inside it, finds it by `longest_start` and takes it over, or copies it while others use it.
Who diverges inside a block, partial or full, first moves what it holds elsewhere: another conversation may come back.

Blocks of one sequence get neighbouring numbers where that is free of charge: attention reads a run without gathering.
"""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

BLOCK_TOKENS = 16  # vLLM's default; at most 15 tokens of a prompt are computed anew for want of a full block
HASH_BYTES = 16  # 2^64 blocks before a chance collision is likely

BlockHash: TypeAlias = bytes


def root_hash(model: str) -> BlockHash:
    """The parent of a first block: KV of different models must not meet."""
    return hashlib.blake2b(model.encode(), digest_size=HASH_BYTES).digest()


def block_hash(parent: BlockHash, tokens: Sequence[int]) -> BlockHash:
    return hashlib.blake2b(parent + array("I", tokens).tobytes(), digest_size=HASH_BYTES).digest()


def chain(root: BlockHash, tokens: Sequence[int]) -> list[BlockHash]:
    """The hashes of all full blocks of `tokens`."""
    hashes = []
    parent = root
    for start in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        parent = block_hash(parent, tokens[start : start + BLOCK_TOKENS])
        hashes.append(parent)
    return hashes


def num_blocks_for(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_TOKENS)


@dataclass(frozen=True)
class _Published:
    parent: BlockHash
    tokens: tuple[int, ...]
    hash: BlockHash | None  # None for a partial block


class BlockPool:
    """Every block is free (unreferenced, perhaps still findable) or referenced by at least one sequence."""

    def __init__(self, num_blocks: int) -> None:
        assert num_blocks > 0
        self.num_blocks = num_blocks
        self._references = [0] * num_blocks
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))  # next to be taken first
        self._published: dict[int, _Published] = {}
        self._by_hash: dict[BlockHash, int] = {}
        self._children: dict[BlockHash, set[int]] = {}

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_cached(self) -> int:
        """Blocks that can be found, in use or not."""
        return len(self._published)

    def match(self, hashes: Iterable[BlockHash]) -> list[int]:
        """The blocks of the longest known prefix of `hashes`, not yet referenced: `share` them before `allocate`."""
        blocks = []
        for each in hashes:
            block = self._by_hash.get(each)
            if block is None:
                break
            blocks.append(block)
        return blocks

    def longest_start(self, parent: BlockHash, tokens: Sequence[int]) -> tuple[int, int] | None:
        """The block after `parent` that begins with the most of `tokens`, and how many; not to be shared."""
        best: tuple[int, int] | None = None
        for block in self._children.get(parent, ()):
            common = _common(self._published[block].tokens, tokens)
            if common and (best is None or common > best[1]):
                best = (block, common)
        return best

    def can_allocate(self, num_blocks: int, sharing: Iterable[int] = ()) -> bool:
        """Whether `num_blocks` are left once the blocks `sharing` are referenced."""
        return num_blocks <= len(self._free) - sum(block in self._free for block in set(sharing))

    def share(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            assert block in self._published, f"block {block} is not published"
            self._free.pop(block, None)
            self._references[block] += 1

    def move(self, block: int, num_continued: int) -> int | None:
        """The block that is known in place of `block` from now on: copy it there, then take `block` over.

        None when there is nothing to move: somebody uses it, all its tokens are continued (`num_continued`), or it is
        the next to be evicted anyway.
        """
        published = self._published[block]
        if self._references[block] or num_continued == len(published.tokens):
            return None
        # Of the blocks that hold nothing the last: the first ones will continue the run that `block` is part of.
        empty = list(itertools.takewhile(lambda each: each not in self._published, self._free))
        target = empty[-1] if empty else next(iter(self._free))
        if target == block:
            return None
        self._unpublish(target)
        self._unpublish(block)
        self._make_known(target, published)
        self._free.move_to_end(target)
        return target

    def take_over(self, block: int) -> bool:
        """Make a block that nobody uses one sequence's own, to write on in; False when somebody uses it."""
        if self._references[block]:
            return False
        del self._free[block]
        self._unpublish(block)
        self._references[block] = 1
        return True

    def allocate(self, num_blocks: int) -> list[int]:
        """Blocks for one sequence to write; evicts what was freed first. Check `can_allocate` before."""
        assert self.can_allocate(num_blocks), f"{num_blocks} blocks asked for, {len(self._free)} free"
        blocks = []
        for _ in range(num_blocks):
            block, _ = self._free.popitem(last=False)
            self._unpublish(block)
            assert self._references[block] == 0
            self._references[block] = 1
            blocks.append(block)
        return sorted(blocks)

    def publish(self, block: int, parent: BlockHash, tokens: Sequence[int]) -> None:
        """Make a written block findable. A copy of a block that is known already stays unknown."""
        assert self._references[block] > 0
        assert block not in self._published
        assert 0 < len(tokens) <= BLOCK_TOKENS
        full = block_hash(parent, tokens) if len(tokens) == BLOCK_TOKENS else None
        if full in self._by_hash:
            return
        siblings = self._children.get(parent, ())
        if full is None and any(_common(self._published[s].tokens, tokens) == len(tokens) for s in siblings):
            return
        self._make_known(block, _Published(parent, tuple(tokens), full))

    def free(self, blocks: Sequence[int]) -> None:
        """One sequence lets go. Later blocks are evicted before earlier ones: without its parent a block is useless."""
        for block in reversed(blocks):
            assert self._references[block] > 0, f"block {block} freed twice"
            self._references[block] -= 1
            if self._references[block] == 0:
                self._free[block] = None
                if block not in self._published:
                    self._free.move_to_end(block, last=False)

    def audit(self, held: Iterable[Sequence[int]]) -> None:
        """Assert that the pool agrees with the blocks its sequences hold."""
        references = Counter(block for blocks in held for block in blocks)
        for block in range(self.num_blocks):
            assert self._references[block] == references[block], f"block {block}: {self._references[block]} references"
            assert (block in self._free) == (references[block] == 0), f"block {block} is lost"
        for block, published in self._published.items():
            assert block in self._children[published.parent]
            assert published.hash is None or self._by_hash[published.hash] == block
        assert sum(map(len, self._children.values())) == len(self._published)
        assert len(self._by_hash) == sum(p.hash is not None for p in self._published.values())

    def _make_known(self, block: int, published: _Published) -> None:
        self._published[block] = published
        self._children.setdefault(published.parent, set()).add(block)
        if published.hash is not None:
            self._by_hash[published.hash] = block

    def _unpublish(self, block: int) -> None:
        published = self._published.pop(block, None)
        if published is None:
            return
        siblings = self._children[published.parent]
        siblings.remove(block)
        if not siblings:
            del self._children[published.parent]
        if published.hash is not None:
            del self._by_hash[published.hash]


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return i
    return min(len(left), len(right))
