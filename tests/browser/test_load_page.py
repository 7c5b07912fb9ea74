"""The page of a load run in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from load.report.page import write_page
from tests.browser.chromium import chromium
from tests.browser.loopback import Loopback
from tests.load.report.runs import call_run

pytestmark = pytest.mark.slow


async def test_a_page_of_a_run_draws_its_plots_and_asks_nobody_for_anything(inside: Loopback, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    write_page(call_run(), path)
    async with chromium(inside) as browser:
        page = await browser.open(path.as_uri(), height=3000)
        await page.until("document.querySelectorAll('.js-plotly-plot .main-svg').length >= 4")
        assert await page.evaluate("document.querySelectorAll('.js-plotly-plot').length") == 4
        assert await page.evaluate("document.querySelectorAll('#the-slowest-turns .bars path').length") > 50
        assert page.problems == []
        assert [request for request in page.requests if not request.startswith(("file:", "data:", "blob:"))] == []
