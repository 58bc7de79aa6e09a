"""The Tinker SDK drives our server: create, forward_backward, optim_step, sample, save, load.

Usage: sdk.py URL MODEL. Prints what it checked, a line each, and ends with an error at the first thing that is not so.
"""

import math
import sys

import tinker
from tinker import types


KEY = "tml-any"  # the server wants none; the SDK wants one


def check(what, ok):
    if not ok:
        sys.exit(f"not so: {what}")
    print(what)


def datum(ids, **inputs):
    n = len(ids) - 1
    given = {"target_tokens": types.TensorData(data=ids[1:], dtype="int64", shape=[n])}
    for name, values in inputs.items():
        given[name] = types.TensorData(data=values, dtype="float32", shape=[n])
    return types.Datum(model_input=types.ModelInput.from_ints(ids[:-1]), loss_fn_inputs=given)


def log_probs(result):
    return [list(map(float, out["logprobs"].data)) for out in result.loss_fn_outputs]


def main(url, model):
    service = tinker.ServiceClient(base_url=url, api_key=KEY)
    names = [m.model_name for m in tinker.RestClient(base_url=url, api_key=KEY).get_server_capabilities().result().supported_models]
    check(f"the server lists {model}", names == [model])
    training = service.create_lora_training_client(base_model=model, rank=8, seed=1).result()
    ids = [5, 9, 14, 3, 20, 7]
    n = len(ids) - 1
    sft = [datum(ids, weights=[1.0] * n), datum(ids[:4], weights=[0.5] * 3)]
    losses = []
    for _ in range(5):
        passed = training.forward_backward(sft, "cross_entropy")
        stepped = training.optim_step(types.AdamParams(learning_rate=1e-2))
        losses.append(passed.result().metrics["loss:sum"])
        check("a step tells the gradient's norm", stepped.result().metrics["grad_norm"] > 0)
    check(f"cross-entropy falls: {losses[0]:.3f} to {losses[-1]:.3f}", losses[-1] < losses[0])

    before = log_probs(training.forward(sft, "cross_entropy").result())
    summed = -sum(before[0]) - 0.5 * sum(before[1])
    check("the loss is the sum of -w log p", math.isclose(
        summed, training.forward(sft, "cross_entropy").result().metrics["loss:sum"], rel_tol=1e-5))
    advantages = [0.0, 0.0, 1.0, 0.0, -1.0]
    rl = [datum(ids, logprobs=before[0], advantages=advantages)]
    for loss, config in (("importance_sampling", None), ("ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2})):
        training.forward_backward(rl, loss, config).result()
        training.optim_step(types.AdamParams(learning_rate=1e-3)).result()
    after = log_probs(training.forward(rl, "importance_sampling").result())
    check("what had a positive advantage is likelier, what had a negative one less so",
          after[0][2] > before[0][2] and after[0][4] < before[0][4])

    saved = training.save_state("first").result().path
    check(f"saved as {saved.split('/', 3)[0]}//…/{saved.split('/', 3)[3]}", saved.startswith("tinker://") and saved.endswith("/weights/first"))
    sampler = training.save_weights_and_get_sampling_client().result()
    prompt = types.ModelInput.from_ints(ids[:3])
    params = types.SamplingParams(max_tokens=6, temperature=1.0, seed=7)
    one = sampler.sample(prompt=prompt, num_samples=2, sampling_params=params).result()
    two = sampler.sample(prompt=prompt, num_samples=2, sampling_params=params).result()
    check("the same seed samples the same", [s.tokens for s in one.sequences] == [s.tokens for s in two.sequences])
    check("each id has a log-probability", all(len(s.logprobs) == len(s.tokens) == 6 for s in one.sequences))
    scored = sampler.compute_logprobs(types.ModelInput.from_ints(ids)).result()
    check("the sampler scores what the trainer does",
          scored[0] is None and all(abs(a - b) < 1e-5 for a, b in zip(scored[1:], after[0])))

    again = service.create_training_client_from_state_with_optimizer(saved).result()
    loaded = log_probs(again.forward(rl, "importance_sampling").result())
    check("what was loaded is what was saved", loaded == after)
    for client in (training, again):
        client.forward_backward(rl, "importance_sampling").result()
        client.optim_step(types.AdamParams(learning_rate=1e-3)).result()
    check("and learns the same from then on", log_probs(again.forward(rl, "importance_sampling").result())
          == log_probs(training.forward(rl, "importance_sampling").result()))
    try:
        training.forward_backward([datum([1, 2, 10**6], weights=[1.0, 1.0])], "cross_entropy").result()
    except Exception as e:  # noqa: BLE001
        check("an id outside the vocabulary is refused", "vocabulary" in str(e))
    else:
        sys.exit("not so: an id outside the vocabulary is refused")


main(*sys.argv[1:])
