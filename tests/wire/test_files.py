import os
from pathlib import Path

import pytest

from wire.files import Unreadable, read_small


def test_text_and_mode_are_read(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("caf\u00e9")
    path.chmod(0o640)
    text, mode = read_small(path, 5)
    assert (text, mode & 0o777) == ("caf\u00e9", 0o640)


def test_more_than_the_bound_is_refused(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"123456")
    with pytest.raises(Unreadable, match="more than 5 bytes"):
        read_small(path, 5)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"ab\xff")
    with pytest.raises(Unreadable, match="byte 2 is not UTF-8"):
        read_small(path, 5)


def test_pipes_devices_and_folders_are_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(Unreadable, match=r"no regular file|Is a directory"):
            read_small(path, 5)


@pytest.mark.parametrize("name", ["none", "a\0b", "\ud800", "a" * 300, "loop"])
def test_what_cannot_be_opened_is_one_error(tmp_path: Path, name: str):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(Unreadable):
        read_small(tmp_path / name, 5)
