"""A small language model of characters, trained by pure functions or in PyTorch's style.

    python examples/char_gpt.py [--style pure|torch] [--steps 800] [--batch-size 32] [--lr 0.004] [--seed 0] [--text FILE] [--sample 400]
                                [--plot char_gpt.png]

A transformer that sees the last 64 characters and gives probabilities of the next one (Vaswani et al. 2017; normalised before each
part, Radford et al. 2019). It reads the language reference that Python carries for `help()`, in the standard library's
`pydoc_data`, or any `--text` of yours; the last tenth of the text is held out. Both styles train the same network by the same rule:

- `pure`: parameters and the optimizer's state are data that go into a compiled function and come out new (`fnad.jit`, `fnad.optim`);
- `torch`: a module, a loss, `backward()`, `step()`; with `import torch` in place of `import fnad.torch as torch` (and so on) these lines
  run on PyTorch.

What the model writes in the end is printed, with the bits per character that it needs for the held-out text; the loss curve and the
probabilities along a piece of text are saved as a picture.
"""

import argparse
import functools
import pathlib
import pydoc_data.topics
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import fnad
import fnad.torch as torch
from fnad.nn import functional as F
from fnad.torch import nn

CONTEXT, WIDTH, HEADS, BLOCKS = 64, 96, 4, 3
DECAY, CLIP, BETAS = 0.1, 1.0, (0.9, 0.98)


def warmup(steps):
    """What the learning rate is multiplied with at a step."""
    return fnad.optim.schedules.warmup_cosine(1.0, warmup_steps=steps // 10, total_steps=steps, end_lr=0.05)


# -- pure functions -------------------------------------------------------------------------------------------------


def init_params(key, symbols):
    """The parameters: dicts and lists of float32 arrays; dense weights are (inputs, outputs)."""

    def dense(key, inputs, outputs, scale=1.0):
        w = fnad.nn.init.normal(key, (inputs, outputs), std=0.02 * scale, dtype=np.float32)
        return {"w": w, "b": np.zeros(outputs, np.float32)}

    def block(key):
        keys = fnad.random.split(key, 4)
        return {
            "norm1": np.ones(WIDTH, np.float32),
            "qkv": dense(keys[0], WIDTH, 3 * WIDTH),
            "out": dense(keys[1], WIDTH, WIDTH, (2 * BLOCKS) ** -0.5),
            "norm2": np.ones(WIDTH, np.float32),
            "up": dense(keys[2], WIDTH, 4 * WIDTH),
            "down": dense(keys[3], 4 * WIDTH, WIDTH, (2 * BLOCKS) ** -0.5),
        }

    keys = fnad.random.split(key, BLOCKS + 2)
    return {
        "symbols": fnad.nn.init.normal(keys[0], (symbols, WIDTH), std=0.02, dtype=np.float32),
        "places": fnad.nn.init.normal(keys[1], (CONTEXT, WIDTH), std=0.02, dtype=np.float32),
        "blocks": [block(k) for k in keys[2:]],
        "norm": np.ones(WIDTH, np.float32),
    }


def logits(params, ids):
    """(batch, time) -> (batch, time, symbols): logarithms of what the next character is, up to a constant."""

    def dense(p, x):
        return x @ p["w"] + p["b"]

    x = F.embedding(ids, params["symbols"]) + params["places"][: ids.shape[1]]
    for p in params["blocks"]:
        q, k, v = np.split(dense(p["qkv"], F.layer_norm(x, (WIDTH,), p["norm1"])), 3, axis=-1)
        q, k, v = (a.reshape(*ids.shape, HEADS, -1).transpose(0, 2, 1, 3) for a in (q, k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 2, 1, 3)
        x = x + dense(p["out"], seen.reshape(x.shape))
        x = x + dense(p["down"], F.gelu(dense(p["up"], F.layer_norm(x, (WIDTH,), p["norm2"]))))
    return F.layer_norm(x, (WIDTH,), params["norm"]) @ params["symbols"].T


def loss_fn(params, ids, following):
    out = logits(params, ids)
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), following.reshape(-1))


def train_pure(data, symbols, steps, lr, seed):
    """Functions that give logits and that write text, and the loss of each step."""
    key, key_text = fnad.random.split(fnad.random.key(seed))
    params = init_params(key, symbols)
    optimizer = fnad.optim.chain(
        fnad.optim.clip_by_global_norm(CLIP),
        fnad.optim.adamw(lr=lambda t: lr * warmup(steps)(t), betas=BETAS, weight_decay=DECAY),
    )
    state = optimizer.init(params)

    @functools.partial(fnad.jit, donate_argnums=(0, 1))
    def step(params, state, ids, following):
        loss, grads = fnad.value_and_grad(loss_fn)(params, ids, following)
        updates, state = optimizer.update(grads, state, params)
        return fnad.optim.apply_updates(params, updates), state, loss

    losses = []
    for ids, following in data:
        params, state, loss = step(params, state, ids, following)
        losses.append(float(loss))

    @functools.partial(fnad.jit, static_argnums=2)
    def write(params, ids, count):
        def one(ids, key):
            chosen = fnad.random.categorical(key, logits(params, ids[None])[0, -1])
            return np.concatenate([ids[1:], chosen[None]]), chosen

        return fnad.scan(one, ids, fnad.random.split(key_text, count))[1]

    return fnad.jit(functools.partial(logits, params)), functools.partial(write, params), losses


# -- PyTorch's style ------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, bias=False)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        for layer in (self.qkv, self.out, self.up, self.down):
            nn.init.normal_(layer.weight, std=0.02 * (1 if layer in (self.qkv, self.up) else (2 * BLOCKS) ** -0.5))
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = (a.view(batch, time, HEADS, -1).transpose(1, 2) for a in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + self.out(seen.reshape(batch, time, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, symbols):
        super().__init__()
        self.symbols = nn.Embedding(symbols, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for table in (self.symbols, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.symbols(ids) + self.places(torch.arange(ids.shape[1]))
        return nn.functional.linear(self.norm(self.blocks(x)), self.symbols.weight)


def train_torch(data, symbols, steps, lr, seed):
    """The same."""
    torch.manual_seed(seed)
    model = GPT(symbols)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=BETAS, weight_decay=DECAY)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup(steps))
    losses = []
    for ids, following in data:
        optimizer.zero_grad()
        out = model(torch.from_numpy(ids))
        loss = nn.functional.cross_entropy(out.flatten(0, 1), torch.from_numpy(following).flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

    @torch.no_grad()
    def predict(ids):
        return model(torch.from_numpy(ids)).numpy()

    @torch.no_grad()
    def write(ids, count):
        ids = torch.from_numpy(ids)
        for _ in range(count):
            chosen = torch.multinomial(torch.softmax(model(ids[None, -CONTEXT:])[0, -1], 0), 1)
            ids = torch.cat([ids, chosen])
        return ids[-count:].numpy()

    return predict, write, losses


# -- what both share ------------------------------------------------------------------------------------------------


def read(path):
    """The text, without what is not ASCII."""
    text = path.read_text(encoding="utf-8") if path else "\n\n".join(pydoc_data.topics.topics.values())
    return text.encode("ascii", "ignore").decode()


def batches(ids, size, steps, seed, times):
    """Pieces of the text and what follows each character, with a progress bar; `times` gets the time at which each was asked for."""
    rng = np.random.default_rng(seed)
    for _ in tqdm(range(steps), unit="step"):
        times.append(time.perf_counter())
        pieces = ids[rng.integers(0, len(ids) - CONTEXT, size)[:, None] + np.arange(CONTEXT + 1)]
        yield pieces[:, :-1].copy(), pieces[:, 1:].copy()
    times.append(time.perf_counter())


def bits(predict, ids):
    """The bits that each character of a text costs: pieces of it are read one after the other, each without what was before it."""
    pieces = ids[: (len(ids) - 1) // CONTEXT * CONTEXT + 1]
    given, following = pieces[:-1].reshape(-1, CONTEXT), pieces[1:].reshape(-1, CONTEXT)
    costs = [
        F.cross_entropy(predict(given[i : i + 32]).transpose(0, 2, 1), following[i : i + 32], reduction="none")
        for i in range(0, len(given) // 32 * 32, 32)
    ]
    return np.concatenate(costs) / np.log(2)


def frequencies(ids, held_out, symbols):
    """The bits per held-out character of a guess that knows how often each character occurs, and nothing else."""
    counts = np.bincount(ids, minlength=symbols) + 1
    return -np.mean(np.log2(counts[held_out] / counts.sum()))


def plot(losses, guess, found, piece, costs, path):
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", width_ratios=(1.2, 1))
    steps = np.arange(len(losses)) + 1
    left.plot(steps, np.array(losses) / np.log(2), color="#08519c", linewidth=1, label="minibatch")
    left.axhline(guess, color="#888888", linestyle=":", label="frequencies of characters alone")
    left.axhline(found, color="#d94801", linestyle="--", label=f"held-out text, at the end: {found:.2f}")
    left.set(xlabel="step", ylabel="bits per character", ylim=(0, None), title="Training")
    left.grid(alpha=0.25)
    left.legend(frameon=False)
    shown = np.clip(costs[:10], 0, 6)
    picture = right.imshow(shown, cmap="OrRd", aspect="auto", vmin=0, vmax=6)
    for (i, j), character in np.ndenumerate(piece[:10]):
        shade = "white" if shown[i, j] > 3.5 else "black"
        right.text(
            j, i, character if character.isprintable() else "·", color=shade, ha="center", va="center", fontsize=7, family="monospace"
        )
    right.set(xticks=[], yticks=[], title="Held-out text: bits that each character costs")
    fig.colorbar(picture, ax=right, shrink=0.8)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main(options):
    text = read(options.text)
    alphabet = np.array(sorted(set(text)))
    ids = np.searchsorted(alphabet, np.array(list(text)))
    ids, held_out = np.split(ids, [len(ids) * 9 // 10])
    if len(held_out) <= 32 * CONTEXT:
        raise SystemExit(f"the text has {len(text)} characters; it takes more than {320 * CONTEXT} to learn from and to test with")
    times = []
    data = batches(ids, options.batch_size, options.steps, options.seed, times)
    train = {"pure": train_pure, "torch": train_torch}[options.style]
    predict, write, losses = train(data, len(alphabet), options.steps, options.lr, options.seed)

    costs = bits(predict, held_out)
    guess = frequencies(ids, held_out, len(alphabet))
    plot(losses, guess, costs.mean(), alphabet[held_out[1 : costs.size + 1].reshape(costs.shape)], costs, options.plot)
    print("".join(alphabet[write(held_out[:CONTEXT], options.sample)]))
    first, rest = times[1] - times[0], times[-1] - times[1]
    speed = f", then {(options.steps - 1) * options.batch_size * CONTEXT / rest:,.0f} characters per second" if options.steps > 1 else ""
    print(f"\nfirst step {first:.1f} s{speed}; plot: {options.plot}")
    print(f"style {options.style}: {costs.mean():.3f} bits per character on {costs.size} held-out ones (frequencies alone: {guess:.3f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--style", choices=("pure", "torch"), default="pure", help="how the training is written (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=800, help="minibatches (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="pieces of 64 characters per step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.004, help="greatest learning rate (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights, the pieces and the sample (default: %(default)s)")
    parser.add_argument("--text", type=pathlib.Path, help="a file to learn from (default: the language reference of Python)")
    parser.add_argument("--sample", type=int, default=400, help="how many characters to write in the end (default: %(default)s)")
    parser.add_argument("--plot", type=pathlib.Path, default=pathlib.Path("char_gpt.png"), help="the picture (default: %(default)s)")
    args = parser.parse_args()
    if min(args.steps, args.batch_size, args.sample) < 1:
        parser.error("--steps, --batch-size and --sample must be at least 1")
    main(args)
