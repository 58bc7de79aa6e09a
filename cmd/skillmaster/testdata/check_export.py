"""Reads a model that skillmaster wrote, and the adapter and its base that it is made of, with transformers and PEFT, and compares
log-probabilities and the ids of a conversation with what skillmaster says.

    python check_export.py MODEL VALUES.json [BASE ADAPTER]

VALUES holds ids, log_probs of all but the first, messages of a conversation and their chat_ids, ready for an answer.
Needs: pip install torch transformers peft (tried with 2.15.0, 5.24.0, 0.21.2).
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def log_probs(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [logits[t - 1, ids[t]].item() for t in range(1, len(ids))]


def compare(name, got, want):
    worst = max(abs(g - w) for g, w in zip(got, want, strict=True))
    print(f"{name}: {len(got)} log-probabilities, largest difference {worst:.1e}")
    if worst > 1e-4:
        sys.exit(f"{name}: log-probabilities differ")


def main(folder, values, base=None, adapter=None):
    with open(values) as f:
        values = json.load(f)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    compare("model", log_probs(model, values["ids"]), values["log_probs"])
    tok = AutoTokenizer.from_pretrained(folder)
    ids = tok.apply_chat_template(values["messages"], add_generation_prompt=True, return_dict=False)
    if list(ids) != values["chat_ids"]:
        sys.exit(f"the conversation is {ids}, want {values['chat_ids']}")
    print(f"conversation: {len(ids)} ids are equal")
    if base:
        from peft import PeftModel
        model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapter)
        compare("adapter", log_probs(model, values["ids"]), values["log_probs"])


if __name__ == "__main__":
    main(*sys.argv[1:])
