from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.serving import serving
from tests.voice.conftest import Stage
from voice import console
from voice.budget import BUDGET_S, STAGES
from wire.config import EdgeConfig
from wire.service import Lifecycle, create_app

KEY = "0123456789abcdef"
PAGE = console.read_page()
OURS = {name: asset.body.decode() for name, asset in PAGE.items() if not name.startswith("vendor/")}
SVG = "http://www.w3.org/2000/svg"  # a name, not an address


@pytest.fixture
async def base() -> AsyncIterator[str]:
    lifecycle, edge = Lifecycle("voice"), EdgeConfig(port=0)
    app = create_app(lifecycle, edge, public=console.PUBLIC)
    console.add_to(app)
    async with serving(app, lifecycle, edge) as url:
        yield url


@pytest.mark.slow
async def test_the_page_and_all_its_files_are_served_with_the_policy(base: str):
    async with aiohttp.ClientSession() as http:
        for path in ("/", *(f"{console.PREFIX}/{name}" for name in PAGE)):
            async with http.get(f"{base}{path}") as response:
                assert (path, response.status) == (path, 200)
                assert (
                    await response.read()
                    == PAGE[path.removeprefix(f"{console.PREFIX}/").strip("/") or "index.html"].body
                )
                assert response.headers["content-security-policy"] == console.POLICY
                assert response.headers["x-content-type-options"] == "nosniff"


def test_the_policy_allows_scripts_of_this_server_alone():
    rules = dict(rule.split(" ", 1) for rule in console.POLICY.split("; "))

    assert rules["default-src"] == "'none'"
    assert {rules[kind] for kind in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert "unsafe" not in console.POLICY


async def test_a_page_known_to_the_browser_is_not_sent_again_until_it_changes(base: str):
    async with aiohttp.ClientSession() as http:
        async with http.get(base) as first:
            assert first.headers["cache-control"] == "no-cache"
            etag = first.headers["etag"]
        for known, status in ((etag, 304), (f'"old", W/{etag}', 304), ('"old"', 200)):
            async with http.get(base, headers={"if-none-match": known}) as response:
                assert (known, response.status) == (known, status)
                assert bool(await response.read()) is (status == 200)


async def test_what_carries_its_version_in_its_name_is_kept(base: str):
    [name] = [name for name in PAGE if name.endswith(".umd.min.js")]
    async with aiohttp.ClientSession() as http, http.get(f"{base}/console/{name}") as response:
        assert "immutable" in response.headers["cache-control"]
        assert response.content_type == "text/javascript"


@pytest.mark.parametrize(
    "path", ["/console/none.js", "/console/../server.py", "/console/%2e%2e/server.py", "/console/"]
)
async def test_nothing_else_is_served(base: str, path: str):
    async with aiohttp.ClientSession() as http, http.get(f"{base}{path}") as response:
        assert response.status == 404


@pytest.mark.slow
async def test_the_page_needs_no_key_and_what_it_asks_does(stage: Stage, tmp_path: Path):
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)
    stage.edge = EdgeConfig(port=0, api_key_file=tmp_path / "key")
    expected = {"/": 200, "/console/main.js": 200, "/v1/status": 401, "/v1/calls": 401, "/metrics": 401}
    async with stage.up() as base, aiohttp.ClientSession() as http:
        for path, status in expected.items():
            async with http.get(f"{base}{path}") as response:
                assert (path, response.status) == (path, status)
        async with http.get(f"{base}/v1/status", headers={"authorization": f"Bearer {KEY}"}) as response:
            assert response.status == 200
            assert KEY not in await response.text()


def test_no_file_names_an_address_outside():
    assert [(name, url) for name, text in OURS.items() for url in re.findall(r"[a-z]+://[^\s\"'`)]+", text)] == [
        ("icon.svg", SVG),
        ("sentences.js", "http://127.0.0.1"),
    ]
    assert not [name for name, text in OURS.items() if re.search(r"(?:src|href|url\(|import .*from) ?=?[\"']?//", text)]


def test_every_file_that_is_named_exists_and_every_file_is_named():
    named = {match for text in OURS.values() for match in re.findall(r"/console/([\w./-]+)", text)}
    imported = {match for text in OURS.values() for match in re.findall(r"from \"\./([\w.-]+)\"", text)}
    notes = {name for name in PAGE if name.endswith(".txt")}

    assert named | imported | notes | {"index.html"} == set(PAGE)


def test_nothing_is_inline():
    index = OURS["index.html"]

    assert not re.findall(r"\son\w+=|style=|javascript:", index)
    assert not re.findall(r"<script(?![^>]*\ssrc=)|<style", index)


def test_no_text_becomes_markup():
    assert not [
        name for name, text in OURS.items() if re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", text)
    ]


def test_the_library_is_what_its_note_says():
    note = PAGE["vendor/VENDORED.txt"].body.decode()
    [file] = re.findall(r"^file +(\S+)", note, re.M)
    [sha256] = re.findall(r"^sha256 +(\S+)", note, re.M)
    [licence] = re.findall(r"^licence +MIT: (\S+)", note, re.M)

    assert hashlib.sha256(PAGE[f"vendor/{file}"].body).hexdigest() == sha256
    assert b"MIT" in PAGE[f"vendor/{licence}"].body


def test_the_page_knows_the_stages_and_the_budget_of_the_server():
    text = OURS["turns.js"]

    assert tuple(re.findall(r'key: "(\w+)"', text)) == STAGES
    assert re.findall(r"BUDGET_MS = (\d+)", text) == [f"{1000 * BUDGET_S:.0f}"]


def test_files_of_the_page_are_short():
    assert not [name for name, text in OURS.items() if name.endswith(".js") and text.count("\n") > 250]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no node; a browser runs the same modules in tests/browser")
def test_the_modules_without_a_page():
    run = subprocess.run(
        ["node", "--test", *sorted(map(str, Path("tests/voice/page").glob("*.test.mjs")))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
