#!/usr/bin/env python3
"""Writes the nouns of a catalogue's titles, as the original asks spaCy for them: a line for each product.

    title_nouns.py MODEL items_shuffle_1000.json > title_nouns.jsonl    # beside the catalogue's files

MODEL is a name such as en_core_web_sm or a folder. Needs spacy; the original's installations have en_core_web_sm or en_core_web_lg.
"""
import gzip
import json
import sys

import spacy

tagger = spacy.load(sys.argv[1])
packed = sys.argv[2].endswith(".gz")
with (gzip.open if packed else open)(sys.argv[2], "rt", encoding="utf-8") as f:
    products = {p["asin"]: p["name"] for p in reversed(json.load(f))}  # of a repeated one the first counts
for asin, title in products.items():
    print(json.dumps({"asin": asin, "nouns": [w.text.lower() for w in tagger(title) if w.pos_ in ("NOUN", "PROPN")]}))
