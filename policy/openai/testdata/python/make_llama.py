#!/usr/bin/env python3
"""Writes a tiny Llama of random weights in float32, with a tokenizer of Qwen2's kind: make_llama.py DIR TEXT...

TEXT are files that the tokenizer is made from. Needs numpy, safetensors and tokenizers. The norms are random, too, so that
one which is left out would be seen. Parts of characters, of which llama.cpp tells no log-probabilities, and the end are
hardly ever said: the first dimension, which no layer touches, is against them.
"""
import json
import os
import sys

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

WIDTH, LAYERS, HEADS, GROUPS, HIDDEN = 64, 2, 4, 2, 128
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def words(folder, texts):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train(texts, trainers.BpeTrainer(vocab_size=1200, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken(s, special=True) for s in SPECIAL])
    t.save(os.path.join(folder, "tokenizer.json"))
    return t


def main(folder, *texts):
    os.makedirs(folder)
    t = words(folder, list(texts))
    vocab, head = t.get_vocab_size(), WIDTH // HEADS
    r = np.random.default_rng(1)
    made = {}

    def matrix(name, rows, columns, scale=0.1):
        made[name + ".weight"] = (scale * r.standard_normal((rows, columns))).astype(np.float32)

    def norm(name):
        made[name + ".weight"] = r.uniform(0.5, 1.5, WIDTH).astype(np.float32)

    matrix("model.embed_tokens", vocab, WIDTH, 0.3)
    norm("model.norm")
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        norm(layer + "input_layernorm")
        norm(layer + "post_attention_layernorm")
        for name, rows, columns in (("self_attn.q", HEADS * head, WIDTH), ("self_attn.k", GROUPS * head, WIDTH), ("self_attn.v", GROUPS * head, WIDTH),
                                    ("self_attn.o", WIDTH, HEADS * head), ("mlp.gate", HIDDEN, WIDTH), ("mlp.up", HIDDEN, WIDTH), ("mlp.down", WIDTH, HIDDEN)):
            matrix(layer + name + "_proj", rows, columns)
    against = [s in SPECIAL or "\ufffd" in t.decode([i]) for s, i in sorted(t.get_vocab().items(), key=lambda e: e[1])]
    made["model.embed_tokens.weight"][:, 0] = np.where(against, -2, 2)
    for i in range(LAYERS):
        made[f"model.layers.{i}.self_attn.o_proj.weight"][0] = made[f"model.layers.{i}.mlp.down_proj.weight"][0] = 0
    save_file(made, os.path.join(folder, "model.safetensors"))
    end = t.token_to_id("<|im_end|>")
    template = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    for name, content in {
        "config.json": {
            "model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "float32", "vocab_size": vocab, "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "head_dim": head, "intermediate_size": HIDDEN,
            "max_position_embeddings": 4096, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True,
            "eos_token_id": end,
        },
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": template},
        "generation_config.json": {"eos_token_id": [end]},
    }.items():
        with open(os.path.join(folder, name), "w") as f:
            json.dump(content, f, indent=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
