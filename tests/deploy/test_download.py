from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.download import Remote, fetch, shown
from deploy.errors import FetchError
from deploy.progress import Lines
from tests.deploy.wheelhouse import Site, serving

DATA = random.Random(7).randbytes(300_000)
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(files={"/model.bin": DATA})) as running:
        yield running


def _fetch(site: Site, target: Path, *, credentials: str | None = None, sha256: str | None = SHA) -> None:
    remote = Remote(f"{site.url}/model.bin", sha256, credentials)
    fetch(remote, target, label="model", progress=Lines(), retry_wait_s=0)


def test_cut_transfer_continues_where_it_stopped(site: Site, tmp_path: Path) -> None:
    site.cuts = [100_000, 50_000]
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA
    assert [wanted for _, wanted in site.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_part_file_of_an_earlier_run_is_continued(site: Site, tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(DATA[:123_456])
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA
    assert [wanted for _, wanted in site.requests] == ["bytes=123456-"]


def test_whole_part_file_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(DATA)
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA


def test_part_file_longer_than_the_source_starts_over(site: Site, tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(DATA + b"more")
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA


def test_server_without_ranges_starts_over(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    site.cuts = [100_000]
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA


def test_corrupt_bytes_are_fetched_once_more(site: Site, tmp_path: Path) -> None:
    site.wrong = {"/model.bin": [b"x" * len(DATA)]}
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA


def test_corrupt_twice_is_an_error_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    site.wrong = {"/model.bin": [b"x" * len(DATA), b"y" * len(DATA)]}
    with pytest.raises(FetchError, match="wrong bytes"):
        _fetch(site, tmp_path / "model.bin")
    assert list(tmp_path.iterdir()) == []


def test_http_error_is_retried_once(site: Site, tmp_path: Path) -> None:
    site.statuses = [503]
    _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == DATA


def test_second_http_error_names_label_url_and_status(site: Site, tmp_path: Path) -> None:
    site.statuses = [503, 503]
    with pytest.raises(FetchError, match=r"model: cannot fetch http://127.0.0.1.*HTTP 503") as caught:
        _fetch(site, tmp_path / "model.bin")
    assert caught.value.hint
    assert len(site.requests) == 2


def test_transfer_that_breaks_without_new_bytes_ends(site: Site, tmp_path: Path) -> None:
    site.cuts = [1000, 0, 0]
    with pytest.raises(FetchError, match="ended after 1000 of 300000 bytes"):
        _fetch(site, tmp_path / "model.bin")
    assert (tmp_path / "model.bin.part").read_bytes() == DATA[:1000]


def test_unreachable_server_is_one_line(tmp_path: Path) -> None:
    with serving(Site()) as gone:
        url = gone.url
    with pytest.raises(FetchError, match="refused") as caught:
        fetch(Remote(f"{url}/x"), tmp_path / "x", label="x", progress=Lines(), retry_wait_s=0)
    assert "\n" not in str(caught.value)


def test_credentials_are_sent_and_never_shown(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site.login = "Basic dXNlcjpzZWNyZXQ="
    _fetch(site, tmp_path / "model.bin", credentials="user:secret")
    assert (tmp_path / "model.bin").read_bytes() == DATA
    with pytest.raises(FetchError, match="401") as caught:
        _fetch(site, tmp_path / "other", credentials="user:wrong")
    assert "wrong" not in str(caught.value) + caplog.text


def test_file_url_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(DATA)
    fetch(Remote(source.as_uri(), SHA), tmp_path / "copy", label="x", progress=Lines(), retry_wait_s=0)
    assert (tmp_path / "copy").read_bytes() == DATA
    assert source.exists()


def test_shown_url_has_no_login_query_or_fragment() -> None:
    assert shown("https://u:p@host:8/a/b.whl?token=1#sha256=2") == "https://host:8/a/b.whl"
