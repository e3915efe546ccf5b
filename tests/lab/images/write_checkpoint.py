# mypy: ignore-errors
# It runs in an image, with packages that are not here.
"""Write a tiny Qwen3.5-MoE checkpoint into a folder: true architecture, random weights.

Runs in an image that has torch and a transformers that knows the model.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3_5MoeConfig
from transformers import Qwen3_5MoeForConditionalGeneration as Model

FOLDER = Path(sys.argv[1])
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SEEN = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
VOCABULARY = 320
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def tokenizer():
    """Every byte is a token, so any text can be encoded and any answer decoded."""
    bare = Tokenizer(models.BPE(vocab={sign: row for row, sign in enumerate(ALPHABET)}, merges=[]))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    bare.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL + SEEN])
    made = PreTrainedTokenizerFast(
        tokenizer_object=bare,
        **dict(zip(("pad_token", "eos_token"), (SPECIAL[0], SPECIAL[2]), strict=True)),
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def config(ids):
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
        "max_position_embeddings": 1024,
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    return Qwen3_5MoeConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )


def readable(model):
    """Let greedy decoding answer with characters that a terminal can show, and not end at once."""
    shown = {ALPHABET.index(chr(code)) for code in range(ord("!"), ord("~") + 1)}
    hidden = [row for row in range(VOCABULARY) if row not in shown]
    with torch.no_grad():
        model.lm_head.weight[hidden] = 0.0


def main():
    torch.manual_seed(0)
    words = tokenizer()
    made = config(words.get_vocab())
    model = Model(made).to(torch.float32)
    readable(model)
    model.generation_config.eos_token_id = made.text_config.eos_token_id
    model.generation_config.pad_token_id = made.text_config.pad_token_id
    model.save_pretrained(FOLDER, max_shard_size="800KB")
    words.save_pretrained(FOLDER)
    images = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen3VLProcessor",
        "patch_size": 16,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    (FOLDER / "preprocessor_config.json").write_text(json.dumps(images, indent=2) + "\n")
    for path in FOLDER.iterdir():
        path.chmod(0o644)  # safetensors writes for its owner alone


main()
