"""Answer requests over HTTP with GraphSAGE: which class does a node have?

    pip install "gnnlab[serve]"
    python3 serve.py --mode sampled --port 8000
    curl localhost:8000/score --json '{"nodes": [3, 14]}'
    curl localhost:8000/score --json '{"nodes": [3], "neighbors": [8, 9]}'

``--mode`` says what is read for a node: ``all`` neighbors; ``sampled`` ones, each time the same; or
``stored`` rows of its neighbors, computed at the start. ``"neighbors"`` are joined to the node by
edges, in both directions, that the graph lacks; with ``"feat"`` instead of ``"nodes"``, the node is
new. Requests that arrive within ``--window`` ms are one mini-batch, but new edges are seen by their
own request alone. While ``--queue`` requests wait, others get status 503. After SIGTERM or Ctrl-C,
all that were accepted are answered.
"""

import argparse
import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import Annotated, Any

import torch
import torch.nn.functional as F
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from pydantic import Field, ValidationError, conlist, create_model
from starlette.requests import ClientDisconnect
from train_dist import SAGE

import gnnlab as dgl
from gnnlab.dataloading import DataLoader, NeighborSampler, score

MAX_NODES, MAX_BYTES, MAX_SECONDS, MAX_BATCH = 1000, 1 << 16, 10, 64


def load_or_train(g: dgl.DGLGraph, args: argparse.Namespace) -> SAGE:
    """Return the model that ``train_dist.py --save`` has written, or train one."""
    hidden = [args.num_hidden] * (len(args.fan_out) - 1)
    model = SAGE([g.ndata["feat"].shape[1], *hidden, int(g.ndata["label"].max()) + 1])
    if args.model:
        model.load_state_dict(torch.load(args.model, weights_only=True))
        return model.eval()
    seeds, sampler = g.ndata["train_mask"].nonzero().flatten(), NeighborSampler(args.fan_out)
    loader = DataLoader(g, seeds, sampler, batch_size=32, shuffle=True, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _, nodes, blocks in chain.from_iterable([loader] * args.num_epochs):
        loss = F.cross_entropy(model(blocks, blocks[0].srcdata["feat"]), g.ndata["label"][nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


class Server:
    """What is read and computed for a node; the requests that wait, and the task that answers."""

    def __init__(self, g: dgl.DGLGraph, model: SAGE, args: argparse.Namespace) -> None:
        self.g, depth, x = g, len(args.fan_out), g.ndata["feat"]
        fanouts = args.fan_out if args.mode == "sampled" else [-1] * depth
        self.steps = [{"model": model, "sampler": NeighborSampler(fanouts), "inputs": x}]
        if args.mode == "stored":  # a step for each layer, over the rows of the one before
            one, self.steps = NeighborSampler([-1]), []
            for n in range(depth):
                x = score(g, nodes=range(g.num_nodes()), **self.steps[-1]) if n else x
                layer = partial(lambda n, blocks, x: model.layer(n, blocks[0], x), n)
                self.steps.append({"model": layer, "sampler": one, "inputs": x})
        self.queue: asyncio.Queue[Any] = asyncio.Queue(args.queue)
        self.window, self.accepted, self.answered = args.window / 1000, 0, 0

    def score(self, nodes: list[int], neighbors: Any = None, feat: Any = None) -> torch.Tensor:
        """Return the probability of each class, a row per node."""
        edges, steps, row = None, self.steps[-1:], None
        if feat is not None:
            nodes, steps, row = [self.g.num_nodes()], self.steps, torch.tensor([feat])
        if neighbors is not None:
            edges = nodes * len(neighbors) + neighbors, neighbors + nodes * len(neighbors)
        for step in steps:
            row = score(self.g, nodes=nodes, **step, new_edges=edges, new_inputs=row)
        return row.softmax(1)

    async def answer(self, *asked: Any) -> dict[str, Any]:
        """Let a request wait for its turn; ``asked`` are arguments of :meth:`score`."""
        rows = asyncio.get_running_loop().create_future()
        try:
            self.queue.put_nowait((asked, rows))
        except asyncio.QueueFull:
            raise HTTPException(503, "too many requests wait", {"Retry-After": "1"}) from None
        self.accepted += 1
        found = (await rows).double().round(decimals=5)
        self.answered += 1
        return {"classes": found.argmax(1).tolist(), "probabilities": found.tolist()}

    async def run(self) -> None:
        """Answer until cancelled: one request of all known nodes, and each with new edges."""
        while True:
            waiting = [await self.queue.get()]
            await asyncio.sleep(self.window)
            while self.queue.qsize() and len(waiting) < MAX_BATCH:
                waiting.append(self.queue.get_nowait())
            known = [each for each in waiting if len(each[0]) == 1]
            jobs = [(asked, [(rows, 1)]) for asked, rows in waiting if len(asked) > 1]
            if known:
                together = [node for (nodes,), _ in known for node in nodes]
                jobs.append(((together,), [(rows, len(nodes)) for (nodes,), rows in known]))
            for asked, parts in jobs:
                try:
                    found = await asyncio.to_thread(self.score, *asked)
                    pieces: Any = found.split([count for _, count in parts])
                except Exception as error:  # of one job, not of the server
                    pieces = [error] * len(parts)
                for (rows, _), piece in zip(parts, pieces, strict=True):
                    if not rows.done():
                        failed = isinstance(piece, Exception)
                        (rows.set_exception if failed else rows.set_result)(piece)

    def app(self) -> FastAPI:
        """Return the application: what it takes, and what it answers."""
        size, dim = self.g.num_nodes(), self.g.ndata["feat"].shape[1]
        ids = conlist(Annotated[int, Field(ge=0, lt=size)], max_length=MAX_NODES)
        feat = conlist(Annotated[float, Field(ge=-1e9, le=1e9)], min_length=dim, max_length=dim)
        more = {"neighbors": (ids | None, None), "feat": (feat | None, None)}
        strict: Any = {"extra": "forbid", "strict": True}
        kind = create_model("Asked", __config__=strict, nodes=(ids, []), **more)

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            running = asyncio.create_task(self.run())
            yield
            running.cancel()  # uvicorn has waited for the answers
            print(f"accepted {self.accepted} answered {self.answered}", flush=True)

        app = FastAPI(lifespan=lifespan)

        @app.get("/health")
        async def health() -> dict[str, int]:
            counts = {"accepted": self.accepted, "answered": self.answered}
            return {"nodes": size, "waiting": self.queue.qsize(), **counts}

        @app.post("/score")
        async def answer(request: Request) -> dict[str, Any]:
            asked = await read(request, kind)
            new = asked.neighbors, asked.feat
            count = len(asked.nodes) + (asked.feat is not None)
            if count != 1 and (count == 0 or new != (None, None)):
                raise HTTPException(422, "give nodes, or feat of a new node; neighbors of one node")
            return await self.answer(asked.nodes, *(() if new == (None, None) else new))

        return app


async def read(request: Request, kind: Any) -> Any:
    """Read and check a body, which must not be too large or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(MAX_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise HTTPException(413, f"a body has at most {MAX_BYTES} bytes")
        return kind.model_validate_json(body)
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(408, f"no whole body within {MAX_SECONDS} s") from None
    except ValidationError as error:
        what = [{"at": each["loc"], "error": each["msg"]} for each in error.errors()[:3]]
        raise HTTPException(422, what) from None


def main(args: argparse.Namespace) -> None:
    """Train and serve."""
    torch.manual_seed(0)
    g = dgl.load_graphs(args.graph)[0][0] if args.graph else dgl.data.load(args.dataset)[0]
    server, test = Server(g, load_or_train(g, args), args), g.ndata["test_mask"]
    right = server.score(test.nonzero().flatten()).argmax(1) == g.ndata["label"][test]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # when uvicorn has ended
    with socket.create_server((args.host, args.port), backlog=1024) as listening:
        address = f"http://{args.host}:{listening.getsockname()[1]}"
        print(f"test accuracy {right.float().mean():.4f}  {address}", flush=True)
        how: Any = {
            "log_level": "warning",
            "timeout_keep_alive": 75,
            "timeout_graceful_shutdown": 60,
        }
        uvicorn.Server(uvicorn.Config(server.app(), **how)).run([listening])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--dataset", default="digits", help="of gnnlab.data.load (default digits)")
    add("--graph", help="a file of gnnlab.save_graphs, instead of a data set")
    add("--model", help="parameters that train_dist.py --save has written; else train")
    add("--mode", choices=("all", "sampled", "stored"), default="sampled")
    add("--fan-out", type=int, nargs="+", default=[10, 25], help="of each layer")
    add("--num-hidden", type=int, default=64)
    add("--num-epochs", type=int, default=10)
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8000, help="0: any that is free")
    add("--window", type=float, default=2, help="ms to wait for further requests (default 2)")
    add("--queue", type=int, default=256, help="requests that may wait (default 256)")
    main(parser.parse_args())
