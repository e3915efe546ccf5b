"""The demo's checkpoint is a true one: transformers that know the model load it whole."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.demo.checkpoint import CONFIG, VOCAB_SIZE, printable_rows, write_checkpoint
from tests.lab.environments import NEW, OLD, environment

LOAD = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model, told = AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
chat = [{"role": "user", "content": "Hi, \\u00fc!"}]
words = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
ids = tokenizer(words, return_tensors="pt")
answer = model.generate(**ids, max_new_tokens=24, do_sample=False)[0, ids["input_ids"].shape[1]:]
print(json.dumps({
    "class": type(model).__name__,
    "told": {name: sorted(map(str, found)) for name, found in told.items() if found},
    "finite": bool(torch.isfinite(model(**ids).logits).all()),
    "words": words,
    "round_trip": tokenizer.decode(ids["input_ids"][0]) == words,
    "tokens": len(answer),
    "answer": tokenizer.decode(answer),
    "parameters": sum(item.numel() for item in model.parameters()),
}))
"""
PARSE = """
import sys
from transformers import AutoConfig
print(AutoConfig.from_pretrained(sys.argv[1]).model_type)
"""


def run(python_of: Path, code: str, model: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python_of / "bin" / "python", "-c", code, model],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.lab
def test_new_transformers_load_it_whole(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    done = run(environment(*NEW), LOAD, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert seen["class"] == "Qwen3_5ForCausalLM"
    assert seen["told"] == {}, "no name is missing, unexpected or of another shape"
    assert seen["finite"]
    assert seen["words"].endswith("Hi, ü!<|im_end|>\n<|im_start|>assistant\n")
    assert seen["round_trip"]
    assert seen["tokens"] == 24, "greedy decoding does not end at once"
    assert seen["answer"].isprintable()
    assert seen["answer"].isascii()
    assert seen["parameters"] < 500_000


@pytest.mark.lab
def test_old_transformers_refuse_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    done = run(environment(*OLD), PARSE, tmp_path)
    assert done.returncode == 1
    assert "model type `qwen3_5_text` but Transformers does not recognize this" in done.stderr


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        write_checkpoint(tmp_path / name, seed=seed)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in files:
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes()
        assert (first == (tmp_path / "c" / name).read_bytes()) == (name != "model.safetensors")
    assert json.loads((tmp_path / "a" / "config.json").read_text()) == CONFIG


def test_what_can_be_answered_can_be_shown() -> None:
    assert len(printable_rows()) == 94
    assert max(printable_rows()) < VOCAB_SIZE
