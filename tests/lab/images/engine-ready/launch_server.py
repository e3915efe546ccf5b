# mypy: ignore-errors
# It runs in an image, with packages that are not here.
"""Stands in for SGLang's server where there is no GPU; all else in this image is the real thing.

SGLang's own server needs a GPU. This one has the main flags of the real one, reads the model's
config with the transformers that is installed, so it fails as the real one does when that does not
know the model, and then serves through that same transformers' own server, on the CPU.
"""

import argparse
import json
import logging
import sys

logger = logging.getLogger("sglang.launch_server")


def parse(words):
    parser = argparse.ArgumentParser(prog="launch_server.py")
    add = parser.add_argument
    add("--model-path", "--model", required=True)
    add("--tokenizer-path")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=30000)
    add("--served-model-name")
    add("--trust-remote-code", action="store_true")
    add("--context-length", type=int)
    add("--dtype", default="auto")
    add("--quantization")
    add("--kv-cache-dtype", default="auto")
    add("--mem-fraction-static", type=float)
    add("--max-running-requests", type=int)
    add("--max-total-tokens", type=int)
    add("--chunked-prefill-size", type=int)
    add("--tensor-parallel-size", "--tp-size", type=int, default=1)
    add("--data-parallel-size", "--dp-size", type=int, default=1)
    add("--nnodes", type=int, default=1)
    add("--node-rank", type=int, default=0)
    add("--dist-init-addr")
    add("--attention-backend")
    add("--reasoning-parser")
    add("--tool-call-parser")
    add("--chat-template")
    add("--disable-cuda-graph", action="store_true")
    add("--log-level", default="info")
    return parser.parse_args(words)


class Front:
    """Knows the served name: answers /v1/models, and gives the server behind the path it knows."""

    def __init__(self, app, path, name):
        self.app, self.path, self.name = app, path, name

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if scope["path"] == "/v1/models":
            return await self.models(send)
        if scope["path"] != "/v1/chat/completions":
            return await self.app(scope, receive, send)
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        body = self.renamed(body)
        length = str(len(body)).encode()
        kept = [item for item in scope["headers"] if item[0] != b"content-length"]
        scope = {**scope, "headers": [*kept, (b"content-length", length)]}
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def again():
            return parts.pop() if parts else await receive()

        return await self.app(scope, again, send)

    def renamed(self, body):
        try:
            request = json.loads(body)
        except ValueError:
            return body
        if isinstance(request, dict):
            request["model"] = self.path
        return json.dumps(request).encode()

    async def models(self, send):
        entry = {"id": self.name, "object": "model", "owned_by": "sglang", "root": self.path}
        body = json.dumps({"object": "list", "data": [entry]}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def serve(args):
    # Not by the program `transformers`: the command line of 5.3 breaks with new releases of the
    # hub's client, and new releases of FastAPI look for its `Request` among the module's names.
    import fastapi
    import uvicorn
    from transformers.cli import serve as command

    command.Request = fastapi.Request

    name = args.served_model_name or args.model_path
    plain = uvicorn.Config

    def config(app, *words, **named):
        return plain(Front(app, args.model_path, name), *words, **named)

    uvicorn.Config = config
    command.Serve(
        force_model=args.model_path,
        host=args.host,
        port=args.port,
        device="cpu",
        trust_remote_code=args.trust_remote_code,
        log_level=args.log_level,
    )


def main():
    args = parse(sys.argv[1:])
    logging.basicConfig(level=args.log_level.upper(), format="[%(asctime)s] %(message)s")
    logger.info("server_args=%s", args)
    from transformers import AutoConfig

    AutoConfig.from_pretrained(args.model_path, trust_remote_code=args.trust_remote_code)
    serve(args)


if __name__ == "__main__":
    main()
