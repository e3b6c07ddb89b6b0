"""examples/serve.py answers what inference computes, under load and faults, and loses nothing."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from tests.helpers import ROOT, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("httpx") is None,
    reason='the extra [serve] is not installed: pip install -e ".[serve]"',
)

# Forks the server, asks, and ends it amid further requests; prints what came of all.
CLIENT = """
import asyncio, json, os, runpy, signal, sys, time

reading, writing = os.pipe()
server = os.fork()
if not server:
    os.dup2(writing, 1)
    os.close(writing)
    sys.argv = sys.argv[2:]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit()

import httpx

os.close(writing)
output, asked = open(reading), json.loads(sys.argv[1])
address = output.readline().split()[-1]
times, counts = [], {}

async def ask(client, body):
    began, body = time.perf_counter(), body if isinstance(body, str) else json.dumps(body)
    try:
        reply = await client.post("/score", content=body)
        outcome, found = str(reply.status_code), reply.json()
    except httpx.TransportError:
        outcome, found = "closed", None
    times.append(time.perf_counter() - began)
    counts[outcome] = counts.get(outcome, 0) + 1
    return outcome, found

def connection():
    return httpx.AsyncClient(base_url=address, timeout=100, verify=False, trust_env=False)

async def load(count):  # 60 clients, one request after the other
    async def one(number):
        async with connection() as client:
            for each in range(count):
                if (await ask(client, {"nodes": [7 * number + each % 100, 3]}))[0] == "closed":
                    return
    await asyncio.gather(*(one(number) for number in range(60)))

async def leave(body):  # too slow, or gone before the answer
    reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
    writer.write(b"POST /score HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 14\\r\\n\\r\\n" + body)
    await writer.drain()
    if len(body) < 14:
        await reader.read(12)
    writer.close()

async def main():
    async with connection() as client:
        answers = [await ask(client, body) for body in asked]
        leaving = [asyncio.create_task(leave(body)) for body in [b'{"nodes": [1]}', b'{"no'] * 5]
        times.clear()
        began = time.perf_counter()
        await load(4)
        rate, ranked = len(times) / (time.perf_counter() - began), sorted(times)
        figures = [rate, *(1e3 * ranked[int(len(ranked) * share)] for share in (0.5, 0.99))]
        await asyncio.gather(*leaving)
        health, before = (await client.get("/health")).json(), counts["200"]
        assert "closed" not in counts, counts
        last = asyncio.create_task(load(10**9))
        while counts["200"] < before + 300:
            await asyncio.sleep(0.001)
        os.kill(server, signal.SIGTERM)
        await last
    rest = output.read().split()
    print(json.dumps([answers, counts, health, figures, rest, os.waitpid(server, 0)[1]]))

asyncio.run(main())
"""
WRONG = {
    '{"nodes"': "JSON",
    '{"nodes": [1797]}': "1797",
    '{"nodes": [-1, NaN, 0.5, "2"]}': "integer",
    '{"nodes": []}': "nodes",
    '{"nodes": [1, 2], "neighbors": [3]}': "neighbors of one node",
    '{"feat": [1, 2]}': "feat",
    '{"nodes": [1], "fanout": 3}': "fanout",
    json.dumps({"nodes": [1] * 1001}): "1000",
}
LONG = pytest.mark.thorough("one way to read is enough")


@pytest.mark.parametrize(
    "mode", ["sampled", pytest.param("all", marks=LONG), pytest.param("stored", marks=LONG)]
)
def test_every_request_is_answered_with_what_inference_computes(mode: str, tmp_path: Path) -> None:
    g = dgl.data.load("digits")[0]
    first, second = dgl.nn.SAGEConv(64, 64, "mean"), dgl.nn.SAGEConv(64, 10, "mean")
    state = {f"layers.0.{name}": rows for name, rows in first.state_dict().items()}
    state |= {f"layers.1.{name}": rows for name, rows in second.state_dict().items()}
    torch.save(state, tmp_path / "model.pt")

    def inference(g: dgl.Graph, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return second(g, first(g, x).relu()).softmax(1)

    near, feat = [5, 9, 9], [0.25] * 64
    bigger = dgl.add_edges(g, [1797] * 3 + near, near + [1797] * 3)
    x = torch.cat([g.ndata["feat"], torch.tensor([feat])])
    wanted = [inference(g, x[:-1])[[3, 14, 3]], inference(bigger, x)[[1797]]]
    asked: list[Any] = [{"nodes": [3, 14, 3]}, {"feat": feat, "neighbors": near}]
    asked += [{"nodes": [3], "neighbors": []}, *WRONG, "0" * 70_000]
    options = ["--port", "0", "--mode", mode, "--model", str(tmp_path / "model.pt")]
    printed = run_script(
        CLIENT, args=[json.dumps(asked), str(ROOT / "examples" / "serve.py"), *options], timeout=280
    )
    answers, counts, health, (rate, middle, most), rest, code = json.loads(printed)
    print(f"{mode}: {rate:.0f} requests/s, p50 {middle:.0f} ms, p99 {most:.0f} ms")  # pytest -s
    for (status, found), rows in zip(answers, wanted, strict=False):
        assert (
            status == "200"
            and found["classes"] == torch.tensor(found["probabilities"]).argmax(1).tolist()
        )
        if mode != "sampled" and (mode == "all" or rows is wanted[0]):
            torch.testing.assert_close(
                torch.tensor(found["probabilities"]), rows, atol=2e-5, rtol=0
            )
    assert answers[2][1]["probabilities"] == answers[0][1]["probabilities"][2:]
    for (status, found), (body, named) in zip(answers[3:-1], WRONG.items(), strict=True):
        assert status == "422" and named in json.dumps(found), (body, found)
    assert answers[-1][0] == "413"
    assert counts.keys() == {"200", "422", "413", "closed"} and counts["closed"] <= 60
    assert health["nodes"] == 1797 and health["waiting"] == 0
    accepted, answered = int(rest[1]), int(rest[3])
    assert accepted == answered and 0 <= answered - counts["200"] <= 5, (
        "five left before the answer"
    )
    assert code == 0


def test_a_full_queue_refuses_and_a_failed_score_fails_its_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    serve = importlib.import_module("serve")
    g = dgl.data.load("digits")[0]
    options = argparse.Namespace(mode="sampled", fan_out=[2, 2], queue=2, window=0)
    server = serve.Server(g, serve.SAGE([64, 8, 10]).eval(), options)

    async def main() -> list[Any]:
        asked = ([3],), ([0.5], [4], None), ([5],)  # the second one no client can send
        waiting = [asyncio.create_task(server.answer(*each)) for each in asked]
        await asyncio.sleep(0)
        running = asyncio.create_task(server.run())
        found = await asyncio.gather(*waiting, return_exceptions=True)
        running.cancel()
        return found

    known, failed, refused = asyncio.run(main())
    assert len(known["classes"]) == 1 and isinstance(failed, dgl.GNNLabError)
    assert refused.status_code == 503 and refused.headers["Retry-After"]
