"""Writes a small true Qwen3.5 checkpoint: a real architecture and tokenizer, random weights.

Neither torch nor a hub is needed: the parameter names and shapes follow ``Qwen3_5ForCausalLM`` as
``transformers`` 5.2.0 to 5.24.0 build it from the same configuration (a test loads the result there
and accepts no missing and no unexpected name).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

VOCAB_SIZE = 320
"""256 bytes, the special tokens, and room to spare; a multiple of 64 as in the large models."""
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

LAYER_TYPES = ["linear_attention"] * 3 + ["full_attention"]
CONFIG: dict[str, object] = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "dtype": "float32",
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "layer_types": LAYER_TYPES,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000.0,
        "rope_type": "default",
    },
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "eos_token_id": VOCAB_SIZE - 62,
    "pad_token_id": VOCAB_SIZE - 64,
    "use_cache": True,
}
"""One period of Qwen3.5's layers in small: three gated-delta-net layers, one of attention."""


def write_checkpoint(folder: Path, *, seed: int = 0) -> None:
    """Write config, weights (float32, about 0.2 M parameters) and tokenizer into ``folder``.

    Raises:
        OSError: the folder cannot be made or written.
    """
    import numpy as np
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    tensors = dict(_parameters(rng))
    (folder / "model.safetensors").write_bytes(save(tensors, metadata={"format": "pt"}))
    _write_json(folder / "config.json", CONFIG)
    _write_json(
        folder / "generation_config.json",
        {"eos_token_id": CONFIG["eos_token_id"], "pad_token_id": CONFIG["pad_token_id"]},
    )
    _byte_level_tokenizer().save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": CONFIG["max_position_embeddings"],
            "chat_template": CHAT_TEMPLATE,
        },
    )


def printable_rows() -> set[int]:
    """Return the tokens that are a printable ASCII character.

    The rows of all others are zero in the output layer: so greedy decoding answers with characters
    that a terminal can show, and does not end at once. It is still noise: the weights are random.
    """
    symbols = {symbol: row for row, symbol in enumerate(_alphabet())}
    return {symbols[chr(code)] for code in range(ord("!"), ord("~") + 1)}


def _alphabet() -> list[str]:
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _byte_level_tokenizer() -> Tokenizer:
    """Every byte is a token, so any text can be encoded and any answer decoded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocab = {symbol: index for index, symbol in enumerate(_alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def _parameters(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    import numpy as np

    size = {key: value for key, value in CONFIG.items() if isinstance(value, int)}
    hidden, inner = size["hidden_size"], size["intermediate_size"]
    heads, kv_heads, head = (
        size["num_attention_heads"],
        size["num_key_value_heads"],
        size["head_dim"],
    )
    k_width = size["linear_num_key_heads"] * size["linear_key_head_dim"]
    v_heads, v_head = size["linear_num_value_heads"], size["linear_value_head_dim"]
    v_width = v_heads * v_head

    def normal(*shape: int) -> np.ndarray:
        scale = float(str(CONFIG["initializer_range"]))
        return rng.normal(0.0, scale, shape).astype(np.float32)

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    yield "model.embed_tokens.weight", normal(VOCAB_SIZE, hidden)
    for index, kind in enumerate(LAYER_TYPES):
        layer = f"model.layers.{index}."
        if kind == "linear_attention":
            part = layer + "linear_attn."
            yield part + "dt_bias", np.ones(v_heads, np.float32)
            yield part + "A_log", np.log(rng.uniform(1, 16, v_heads)).astype(np.float32)
            conv_width = 2 * k_width + v_width
            yield part + "conv1d.weight", normal(conv_width, 1, size["linear_conv_kernel_dim"])
            yield part + "norm.weight", np.ones(v_head, np.float32)
            yield part + "in_proj_qkv.weight", normal(conv_width, hidden)
            yield part + "in_proj_z.weight", normal(v_width, hidden)
            yield part + "in_proj_b.weight", normal(v_heads, hidden)
            yield part + "in_proj_a.weight", normal(v_heads, hidden)
            yield part + "out_proj.weight", normal(hidden, v_width)
        else:
            part = layer + "self_attn."
            yield part + "q_proj.weight", normal(2 * heads * head, hidden)
            yield part + "k_proj.weight", normal(kv_heads * head, hidden)
            yield part + "v_proj.weight", normal(kv_heads * head, hidden)
            yield part + "o_proj.weight", normal(hidden, heads * head)
            yield part + "q_norm.weight", zeros(head)
            yield part + "k_norm.weight", zeros(head)
        yield layer + "mlp.gate_proj.weight", normal(inner, hidden)
        yield layer + "mlp.up_proj.weight", normal(inner, hidden)
        yield layer + "mlp.down_proj.weight", normal(hidden, inner)
        yield layer + "input_layernorm.weight", zeros(hidden)
        yield layer + "post_attention_layernorm.weight", zeros(hidden)
    yield "model.norm.weight", zeros(hidden)
    head_weights = normal(VOCAB_SIZE, hidden)
    head_weights[[row for row in range(VOCAB_SIZE) if row not in printable_rows()]] = 0.0
    yield "lm_head.weight", head_weights
