"""Writes terms.jsonl beside this script: texts, and the terms that Lucene 8.7 makes of them.

    javac -cp CORE:ANALYZERS -d CLASSES Terms.java
    python3 make.py CORE:ANALYZERS:CLASSES

CORE and ANALYZERS are lucene-core-8.7.0.jar and lucene-analyzers-common-8.7.0.jar (Debian 12: liblucene8-java).

Left out are characters younger than Unicode 3.2 but for common emoji, since Lucene 8.7 knows Unicode 9 only, and signs
that stand where no text has them: marks on emoji and on nothing, half a flag, Hebrew words with several quotes.
"""

import json
import os
import random
import subprocess
import sys
import unicodedata

PIECES = list("abzS09 _.',:;\"#*-/() ") + [
    "'s", "’s", "＇S", "’", "‘", "“", "”", "–", "—", "…", "•", "°", "®", "™", "é", "ß", "ñ", "İ", "ı", "Ω", "Σ", "ж", "א ", " ב\"ב ",
    "ع", "٣", "٫", "日", "本", "ひ", "カ", "ー", "ｶ", "한", "ก", "ำ", "က", "\u200b", "\u00ad", "½", "²", "①", "Ⅷ", "́", "̈",
    "\u00a0", "\u3000", "\ufeff", "\t", "\n", "·", "‧", "．", "，", "：", "＿", "‿", "⁄", "ﬁ", "ª", "º", "µ", "running", "the",
    "2.4", "1,000", "ˈ", "˃", "˚", "㎡", "㋐", "〜", "々", "〆", "\ufffd", "€", "\u2060", "𝐚", "𝟙", "ﾟ",
    "❤ ", "❤\ufe0f ", "❤\ufe0e ", "★", "✔", "👍 ", "👍🏽 ", "👨\u200d👩\u200d👧 ", "🇺🇸 ", "🇩🇪 ", "😀 ", "3\ufe0f\u20e3 ", "#\ufe0f\u20e3 ",
    "🏳\ufe0f\u200d🌈 ",
]


def texts():
    r = random.Random(1)
    for _ in range(1500):
        yield "".join(r.choice(PIECES) for _ in range(r.randint(1, 12)))
    for c in range(0x20000):
        known = unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Co", "Cs") and unicodedata.category(chr(c)) != "Sk"
        if known and c % (7 if c < 0x3400 or c > 0xD7A3 else 991) == 0:
            yield "a{0}b {0} {0}{0} 1{0}2".format(chr(c))
    for n in (254, 255, 256, 300, 600):
        yield "a" * n + " " + "é" * n + " " + "日" * n + "s"
    yield from ("a" * 254 + "'s", "a.b." * 100, "1," * 200, "𝐚" * 130, "x'" * 150, "ー" * 400, "generalizations " * 3)


def lucene(classpath, given):
    lines = "\n".join(t.encode().hex() for t in given) + "\n"
    out = subprocess.run(["java", "-cp", classpath, "Terms"], input=lines, capture_output=True, check=True, text=True).stdout
    for text, line in zip(given, out.splitlines(), strict=True):
        yield text, [bytes.fromhex(t).decode() for t in line.split("\t")[1].split(",") if t]


if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "terms.jsonl"), "w") as f:
        for case in lucene(sys.argv[1], list(texts())):
            f.write(json.dumps(case) + "\n")
