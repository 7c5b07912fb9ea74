from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.log_file import LogFile

LONGEST = 13  # bytes of a line


def contents(folder: Path) -> list[bytes]:
    """Oldest first."""
    return [path.read_bytes() for path in sorted(folder.iterdir(), reverse=True)]


@given(
    st.lists(st.binary(max_size=LONGEST - 1).map(lambda text: text.replace(b"\n", b"x") + b"\n"), max_size=60),
    st.lists(st.integers(1, 40), min_size=1, max_size=10),
    st.integers(LONGEST, 60),
)
def test_whole_lines_in_order_and_nothing_missing_between(lines: list[bytes], cuts: list[int], max_bytes: int) -> None:
    written = b"".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        log = LogFile(Path(folder) / "a.log", max_bytes)
        left = written
        for i in range(len(written)):
            size = cuts[i % len(cuts)]
            log.write(left[:size])
            left = left[size:]
        log.close()
        kept = contents(Path(folder))
    assert len(kept) <= 3
    assert written.endswith(b"".join(kept))
    assert all(not text or text.endswith(b"\n") for text in kept)
    assert all(len(text) < max_bytes + LONGEST for text in kept)


def test_log_of_an_earlier_run_is_continued_and_counts(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"x" * 99 + b"\n")
    log = LogFile(tmp_path / "a.log", 100)
    log.write(b"new\n")
    log.close()
    assert contents(tmp_path) == [b"x" * 99 + b"\n", b"new\n"]


def test_output_without_a_line_end_is_bounded_too(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", 100)
    for _ in range(1000):
        log.write(b"." * 30)
    log.close()
    assert all(len(text) < 230 for text in contents(tmp_path))


def test_disk_that_refuses_is_told_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = LogFile(Path("/dev/full"))
    with caplog.at_level(logging.WARNING):
        log.write(b"one\n")
        log.write(b"two\n")
    log.close()
    assert caplog.text.count("/dev/full: No space left on device; lines are lost") == 1
