from __future__ import annotations

import asyncio
import contextlib
import doctest
import threading
from pathlib import Path

from support.small_broker import small_broker

from broker.registry.ownertoken import keep_owner_token
from broker.registry.tokens import Tokens

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


async def test_every_example_of_the_clients_page_runs_against_a_broker(tmp_path: Path) -> None:
    # A closing fence is not output.
    text = PAGE.read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner()
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        runner.run(test, out=report.append)
        loop.call_soon_threadsafe(done.set)

    token = keep_owner_token(tmp_path).read_text().strip()
    with contextlib.closing(Tokens(tmp_path / "tokens.db")) as tokens:
        async with small_broker(tmp_path, tokens=tokens) as url:
            test.globs |= {"url": url, "token": token}
            # Not the loop's own threads: an example that waits for ever must not hold up the end.
            threading.Thread(target=run, daemon=True).start()
            async with asyncio.timeout(60):
                await done.wait()
    assert not runner.failures, "".join(report)
    assert runner.tries > 20
