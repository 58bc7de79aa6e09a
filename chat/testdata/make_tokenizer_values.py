"""Writes what Hugging Face's tokenizers make of our test texts.

Needs: pip install tokenizers (made with 0.23.3). Run it in this folder, after `go test ./chat -run Entity -update`,
which writes entity.json with our own trainer:

    python make_tokenizer_values.py

It reads corpus.txt and entity.json and writes gpt2.json, qwen.json, llama3.json and smollm.json (small tokenizers with the
pre-tokenizers of those models, trained on corpus.txt; the last one lacks some bytes, as SmolLM2's does), common.json (with patterns of our own, one after another) and
values.json (texts, and their ids under each tokenizer).
"""

import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

QWEN = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
COMMON = [r"(?i:the|mug)| ?[A-Za-zé]+|\d+|\s+|[^\sA-Za-z\d]{1,2}", r"\n|[c-d]\D"]
MISSING = "\u00c0\u00f1\u00ff\u010b\u00ce\u0133"  # bytes c0 f1 ff 0b ce 91, in the byte alphabet
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
TAGS = ["<think>", "</think>"]

TEXTS = [
    "",
    " ",
    "a",
    "It's we're THEY'LL I'd 'tis o'clock 'S'T '\u017f '\u017fa 'L\u017f",
    "tabs\tand\t\tmore  spaces   \n\n  \n trailing   ",
    "\r\n\r\n windows\r\n lines \r\r\n x",
    "numbers 1 12 123 1234 12345 3.14 1,000 \u0663\u0664 \u2167 \u00bd\u00b2 x2y",
    "caf\u00e9 cafe\u0301 \u00c5ngstr\u00f6m A\u030angstro\u0308m \u1e9e stra\u00dfe \u212b",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3002 \u4e2d\u6587\uff0c\u6807\u70b9 \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u05e2\u05d1\u05e8\u05d9\u05ea \u0639\u0631\u0628\u064a \u0928\u092e\u0938\u094d\u0924\u0947",
    "emoji \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f e\u0301\u0302 zero\u200bwidth",
    "nbsp\u00a0x\u00a0\u00a0y\u2003z\u3000w\u2028v\u2029u\u0085t \u00a0 ",
    "(paren)[bracket]{brace}<angle> a-b_c d/e !!! ...!\n\n\n?x",
    "<|im_start|>system\nx<|im_end|>\n<think>y</think><|endoftext|><think",
    "the cabinet 3 a cabinet, cabinets teacabinet cabinet_3 cabinet 123 cabinet 12 cabinet 1a cabinet\u00e9 \u00e9cabinet cabinet \u0663",
    "You see a cabinet 3, a mug 12, and a cd 1.\nput a clean mug in cabinet. unclean cleaned clean-cut clean",
    "cabinet  3 cabinet\n3 mug 1mug 2 x1 12345 7",
    " cabinet 1\u24d0 cabinet 1\u00bd cabinet 1\u2167 cabinet 1\u00b2 cabinet 1\u0301 cabinet 1\u203f cabinet 1\u0663 cabinet 1\u2460 cabinet 1_",
    "\u24d0cabinet 3 \u00bdcabinet 3 \u2460cabinet 3 \u203fcabinet 3 _cabinet 3 -cabinet 3 \u4e2dcabinet 3",
    "a\u24d0cabinet cabinet\u24d0 \u2167mug mug\u2167 _mug mug\u0301 \u203fmug mug\u203f",
]

POOL = list("aaabcdestmug      \n\n\r\t\u000b''''''.,!<>|_-019") + [
    "\u00e9", "e\u0301", "\u0301", "\u017f", "\u00df", "\u4e2d", "\u3042", "\u0434", "\u0639", "\u0663", "\u2167", "\u00bd", "\u00a0",
    "\u2003", "\u2028", "\u0085", "\u3000", "\u200b", "\u200d", "\u24d0", "\u203f", "\U0001f600", "\U0001d49c", "'re", "'LL", " mug", " mug 1",
    "cd", " cd", "clean", " cabinet 12", "<think>", "<|im_end|>", "\u0928\u0940",
]


def texts():
    rng = random.Random(7)
    return TEXTS + ["".join(rng.choice(POOL) for _ in range(rng.randrange(1, 30))) for _ in range(150)]


def train(normalizer, patterns, ignore_merges, use_regex=False, digits=False, without=""):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tok.normalizer = normalizer
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    splits = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    if digits:
        splits.append(pre_tokenizers.Digits(individual_digits=True))
    tok.pre_tokenizer = pre_tokenizers.Sequence(splits + [level]) if splits else level
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700, min_frequency=2, special_tokens=SPECIAL,
        initial_alphabet=[c for c in pre_tokenizers.ByteLevel.alphabet() if c not in without], show_progress=False)
    with open("corpus.txt", encoding="utf-8", newline="") as f:
        paragraphs = f.read().split("\n\n")
    # this trainer does not cut texts at special tokens, ours does
    tok.train_from_iterator([p for p in paragraphs if "<|" not in p], trainer)
    tok.add_tokens([AddedToken(t, special=False) for t in TAGS])
    return tok


def without_added(tok):
    d = json.loads(tok.to_str())
    d["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(d))


def encode(tok, special_as_text=False):
    tok.encode_special_tokens = special_as_text
    return [tok.encode(t, add_special_tokens=False).ids for t in texts()]


def main():
    toks = {
        "gpt2": train(None, [], False, use_regex=True),
        "qwen": train(normalizers.NFC(), [QWEN], False),
        "llama3": train(None, [LLAMA3], True),
        "smollm": train(None, [], False, use_regex=True, digits=True, without=MISSING),
        "common": train(None, COMMON, False, use_regex=True),
    }
    for name, tok in toks.items():
        tok.save(name + ".json", pretty=False)
    toks["entity"] = Tokenizer.from_file("entity.json")
    values = {"texts": texts(), "tokenizers": {}}
    for name, tok in toks.items():
        values["tokenizers"][name] = {
            "size": tok.get_vocab_size(),
            "special": encode(tok),
            "tags": encode(tok, special_as_text=True),
            "plain": encode(without_added(tok)),
        }
    with open("values.json", "w") as f:
        json.dump(values, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
