#!/usr/bin/env python3
"""Writes a Llama of a folder as a GGUF file and serves it with llama.cpp's own server: serve_gguf.py DIR FILE PORT

Needs gguf, safetensors and xllamacpp, which has that server in it. The tokenizer has to be of Qwen2's kind.
"""
import json
import os
import signal
import sys

import gguf
import xllamacpp
from safetensors.numpy import load_file


def rotated(w, heads):
    """Rows of a projection as llama.cpp turns them: it pairs neighbours, Hugging Face halves."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def read(folder, name):
    with open(os.path.join(folder, name)) as f:
        return json.load(f)


def words(g, folder):
    t, shown = read(folder, "tokenizer.json"), read(folder, "tokenizer_config.json")
    special = {a["id"]: a for a in t["added_tokens"]}
    tokens = {i: s for s, i in t["model"]["vocab"].items()} | {i: a["content"] for i, a in special.items()}
    assert sorted(tokens) == list(range(len(tokens)))
    kinds = {True: gguf.TokenType.CONTROL, False: gguf.TokenType.USER_DEFINED}
    g.add_tokenizer_model("gpt2")
    g.add_tokenizer_pre("qwen2")
    g.add_token_list([tokens[i] for i in range(len(tokens))])
    g.add_token_types([kinds[special[i]["special"]] if i in special else gguf.TokenType.NORMAL for i in range(len(tokens))])
    g.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]])
    g.add_eos_token_id(next(i for i, s in tokens.items() if s == shown["eos_token"]))
    g.add_add_bos_token(False)
    g.add_chat_template(shown["chat_template"])


def write(folder, path):
    c = read(folder, "config.json")
    g = gguf.GGUFWriter(path, "llama")
    g.add_block_count(c["num_hidden_layers"])
    g.add_context_length(c["max_position_embeddings"])
    g.add_embedding_length(c["hidden_size"])
    g.add_feed_forward_length(c["intermediate_size"])
    g.add_head_count(c["num_attention_heads"])
    g.add_head_count_kv(c["num_key_value_heads"])
    g.add_layer_norm_rms_eps(c["rms_norm_eps"])
    g.add_rope_freq_base(c["rope_theta"])
    g.add_rope_dimension_count(c["head_dim"])
    g.add_vocab_size(c["vocab_size"])
    g.add_file_type(gguf.LlamaFileType.ALL_F32)
    words(g, folder)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c["num_hidden_layers"])
    for name, w in load_file(os.path.join(folder, "model.safetensors")).items():
        for part, heads in (("q_proj", c["num_attention_heads"]), ("k_proj", c["num_key_value_heads"])):
            if part in name:
                w = rotated(w, heads)
        g.add_tensor(names.get_name(name, try_suffixes=(".weight",)), w)
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()


def main(folder, path, port):
    write(folder, path)
    p = xllamacpp.CommonParams()
    p.model.path, p.port, p.n_ctx, p.n_parallel = path, int(port), 4 * 1024, 4
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.cache_type_k = p.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    server = xllamacpp.Server(p)
    print(f"llama.cpp {xllamacpp.__version__} listens on {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
