from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.blocks import BLOCK_TOKENS, BlockPool, block_hash, chain, num_blocks_for, root_hash

ROOT = root_hash("m")
tokens = st.lists(st.integers(0, 2), max_size=4 * BLOCK_TOKENS)


def written(pool: BlockPool, prompt: list[int]) -> list[int]:
    """Blocks of a sequence that computed `prompt`, published and let go."""
    blocks = pool.allocate(num_blocks_for(len(prompt)))
    parents = [ROOT, *chain(ROOT, prompt)]
    for i, block in enumerate(blocks):
        pool.publish(block, parents[i], prompt[i * BLOCK_TOKENS : (i + 1) * BLOCK_TOKENS])
    pool.free(blocks)
    return blocks


@given(tokens, tokens)
def test_hashes_agree_exactly_as_far_as_whole_blocks_do(left: list[int], right: list[int]):
    agreeing = 0
    for a, b in zip(chain(ROOT, left), chain(ROOT, right), strict=False):
        agreeing += a == b
    common = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))

    assert agreeing == common // BLOCK_TOKENS
    assert len(chain(ROOT, left)) == len(left) // BLOCK_TOKENS


def test_models_do_not_share_blocks():
    assert chain(root_hash("a"), list(range(16))) != chain(root_hash("b"), list(range(16)))


def test_a_prompt_is_found_again_and_its_beginning_too():
    pool = BlockPool(8)
    prompt = list(range(40))
    blocks = written(pool, prompt)

    assert pool.match(chain(ROOT, prompt)) == blocks[:2]
    assert pool.match(chain(ROOT, [*prompt[:16], *[99] * 16])) == blocks[:1]
    assert pool.match(chain(ROOT, [99, *prompt])) == []


def test_the_longest_beginning_of_a_partial_block_is_found():
    pool = BlockPool(8)
    prompt = list(range(24))
    blocks = written(pool, prompt)
    parent = chain(ROOT, prompt)[0]

    assert pool.longest_start(parent, [16, 17, 18, 99]) == (blocks[1], 3)
    assert pool.longest_start(parent, list(range(16, 40))) == (blocks[1], 8)
    assert pool.longest_start(parent, [99]) is None
    assert pool.longest_start(ROOT, [0, 1]) == (blocks[0], 2)


def test_the_least_recently_freed_go_first_and_tails_before_heads():
    pool = BlockPool(4)
    first, second = written(pool, list(range(32))), written(pool, list(range(100, 132)))

    pool.allocate(1)

    assert pool.match(chain(ROOT, list(range(32)))) == first[:1]
    assert pool.match(chain(ROOT, list(range(100, 132)))) == second


def test_blocks_without_content_are_taken_before_any_cached_one():
    pool = BlockPool(4)
    cached = written(pool, list(range(32)))
    pool.free(pool.allocate(2))

    assert not set(pool.allocate(2)) & set(cached)


def test_what_a_block_holds_is_found_where_it_was_moved():
    pool = BlockPool(4)
    prompt = list(range(24))
    full, partial = written(pool, prompt)
    parent = chain(ROOT, prompt)[0]

    assert pool.move(partial, 8) is None  # all of it is continued
    target = pool.move(partial, 3)
    assert target not in (None, full, partial)
    assert pool.longest_start(parent, [16, 17, 18, 99]) == (target, 3)
    moved = pool.move(full, 2)
    assert pool.match(chain(ROOT, prompt)) == [moved]
    assert pool.take_over(full)
    assert pool.take_over(partial)
    pool.audit([[full, partial]])


def test_a_block_in_use_and_one_that_goes_next_are_not_moved():
    pool = BlockPool(1)
    blocks = written(pool, list(range(16)))
    assert pool.move(blocks[0], 3) is None

    pool.share(blocks)
    assert pool.move(blocks[0], 3) is None
    assert pool.match(chain(ROOT, list(range(16)))) == blocks


def test_a_shared_block_is_not_free_until_all_let_go():
    pool = BlockPool(2)
    blocks = written(pool, list(range(16)))
    pool.share(blocks)
    pool.share(blocks)
    pool.free(blocks)

    assert pool.num_free == 1
    assert not pool.can_allocate(2)
    assert not pool.take_over(blocks[0])
    pool.audit([blocks])
    pool.free(blocks)
    assert pool.take_over(blocks[0])


def test_what_will_be_shared_does_not_count_as_room():
    pool = BlockPool(2)
    blocks = written(pool, list(range(16)))

    assert pool.can_allocate(2)
    assert not pool.can_allocate(2, sharing=blocks)
    assert pool.can_allocate(1, sharing=blocks)


def test_the_same_content_is_published_once():
    pool = BlockPool(4)
    blocks = pool.allocate(2)
    content = list(range(16))
    for block in blocks:
        pool.publish(block, ROOT, content)

    assert pool.num_cached == 1
    assert pool.match([block_hash(ROOT, content)]) == blocks[:1]
    pool.audit([blocks])


def test_audit_notices_a_lost_block():
    pool = BlockPool(4)
    pool.allocate(2)

    with pytest.raises(AssertionError):
        pool.audit([])


def test_freeing_twice_is_an_error():
    pool = BlockPool(1)
    blocks = pool.allocate(1)
    pool.free(blocks)

    with pytest.raises(AssertionError, match="twice"):
        pool.free(blocks)
