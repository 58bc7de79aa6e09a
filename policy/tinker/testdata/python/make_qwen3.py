#!/usr/bin/env python3
"""Writes a tiny Qwen3 of random weights in float32: make_qwen3.py WORDS DIR

WORDS is a folder with the tokenizer's files, which are copied. Needs torch and transformers. The norms are random, too, so
that one which is left out would be seen.
"""
import os
import shutil
import sys

import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM


def main(words, folder):
    tokens = len(AutoTokenizer.from_pretrained(words))
    torch.manual_seed(1)
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=tokens, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, max_position_embeddings=4096, rope_theta=1e6, tie_word_embeddings=True, initializer_range=0.1, dtype="float32",
    ))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.uniform_(0.5, 1.5)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(words, name), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
