"""LeNet-5 on handwritten digits, trained by pure functions or in PyTorch's style.

    python examples/lenet.py [--style pure|torch] [--steps 1500] [--batch-size 64] [--lr 0.002] [--seed 0] [--plot lenet.png]

The network of LeCun et al. (1998), for images of 32x32 pixels: two convolutions with tanh and mean pooling, then three dense layers.
The data are the 1,797 digits of 8x8 pixels that scikit-learn ships, enlarged four times; a fifth of them is held out and looked at once,
at the end. Both styles train the same network by the same rule; they differ in how the program is written:

- `pure`: parameters and the optimizer's state are data that go into a compiled function and come out new (`fnad.jit`, `fnad.optim`);
- `torch`: a module, a loss, `backward()`, `step()`; with `import torch` in place of `import fnad.torch as torch` (and so on) these lines
  run on PyTorch.

The loss curve, what was taken for what, and the first layer's filters are saved as one picture.
"""

import argparse
import functools
import pathlib
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import fnad
import fnad.torch as torch
from fnad.nn import functional as F
from fnad.nn import layers
from fnad.torch import nn

MOVE = 3


def load(seed):
    """Training images and labels, held-out images and labels; images are float32 of shape (n, 1, 32, 32) in [0, 1]."""
    images, labels = load_digits(return_X_y=True)
    images = F.interpolate((images / 16).astype(np.float32).reshape(-1, 1, 8, 8), scale_factor=4, mode="bilinear")
    x, x_test, y, y_test = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=seed)
    return x, y, x_test, y_test


def batches(x, y, size, steps, seed):
    """`steps` minibatches, from one shuffled pass over the data after the other, moved by up to `MOVE` pixels: digits stay the same."""
    rng = np.random.default_rng(seed)
    padded = np.pad(x, ((0, 0), (0, 0), (MOVE, MOVE), (MOVE, MOVE)))
    rows = np.empty(0, int)
    for _ in range(steps):
        while len(rows) < size:
            rows = np.concatenate([rows, rng.permutation(len(x))])
        down, right = rng.integers(0, 2 * MOVE + 1, size=2)
        yield padded[rows[:size], :, down : down + 32, right : right + 32], y[rows[:size]]
        rows = rows[size:]


# -- pure functions -------------------------------------------------------------------------------------------------

LENET = layers.sequential(
    layers.conv2d(1, 6, 5),
    layers.function(np.tanh),
    layers.function(F.avg_pool2d, 2),
    layers.conv2d(6, 16, 5),
    layers.function(np.tanh),
    layers.function(F.avg_pool2d, 2),
    layers.function(lambda x: x.reshape(len(x), -1)),
    layers.linear(16 * 5 * 5, 120),
    layers.function(np.tanh),
    layers.linear(120, 84),
    layers.function(np.tanh),
    layers.linear(84, 10),
)


def train_pure(data, steps, lr, seed):
    """A function from images to logits, the filters of the first layer, and the loss of each step."""
    params = LENET.init(fnad.random.key(seed), np.float32)
    optimizer = fnad.optim.adamw(lr=fnad.optim.schedules.cosine_annealing_lr(lr, T_max=steps))
    state = optimizer.init(params)

    @functools.partial(fnad.jit, donate_argnums=(0, 1))
    def step(params, state, x, y):
        loss, grads = fnad.value_and_grad(lambda p: F.cross_entropy(LENET.apply(p, x), y))(params)
        updates, state = optimizer.update(grads, state, params)
        return fnad.optim.apply_updates(params, updates), state, loss

    losses = []
    for x, y in data:
        params, state, loss = step(params, state, x, y)
        losses.append(float(loss))
    return functools.partial(LENET.apply, params), params[0]["weight"], losses


# -- PyTorch's style ------------------------------------------------------------------------------------------------


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = nn.functional.avg_pool2d(torch.tanh(self.conv1(x)), 2)
        x = nn.functional.avg_pool2d(torch.tanh(self.conv2(x)), 2)
        x = torch.tanh(self.fc1(x.flatten(1)))
        return self.fc3(torch.tanh(self.fc2(x)))


def train_torch(data, steps, lr, seed):
    """The same."""
    torch.manual_seed(seed)
    model = LeNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = criterion(model(torch.from_numpy(x)), torch.from_numpy(y))
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

    def predict(x):
        with torch.no_grad():
            return model(torch.from_numpy(x)).numpy()

    return predict, model.conv1.weight.detach().numpy(), losses


# -- what both share ------------------------------------------------------------------------------------------------


def watched(data, steps, times):
    """The same batches, with a progress bar; `times` gets the time at which each was asked for, and that of the end."""
    for batch in tqdm(data, total=steps, unit="step"):
        times.append(time.perf_counter())
        yield batch
    times.append(time.perf_counter())


def plot(losses, confusion, filters, path):
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=(1.5, 1.1, 0.8))
    left.semilogy(np.arange(len(losses)) + 1, losses, ".", color="#6baed6", alpha=0.5, markersize=3)
    window = min(20, len(losses))
    mean = np.convolve(losses, np.ones(window) / window, "valid")
    left.semilogy(np.arange(window, len(losses) + 1), mean, color="#08519c", linewidth=1.8)
    left.set(xlabel="step", ylabel="cross-entropy", title=f"Loss of minibatches, and its mean over {window}")
    left.grid(alpha=0.25)
    middle.imshow(np.where(np.eye(10), np.nan, confusion), cmap="Oranges", vmin=0, vmax=max(2, (confusion * (1 - np.eye(10))).max()))
    for i, j in zip(*np.nonzero(confusion), strict=True):
        middle.text(j, i, confusion[i, j], ha="center", va="center", fontsize=7)
    middle.set(xticks=range(10), yticks=range(10), xlabel="taken for", ylabel="held-out digit", title="Held-out digits")
    apart = np.pad(filters[:, 0], ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)  # six of them, in three rows of two
    sheet = apart.reshape(3, 2, 6, 6).transpose(0, 2, 1, 3).reshape(18, 12)
    right.imshow(sheet[:-1, :-1], cmap="RdBu", vmin=-np.abs(filters).max(), vmax=np.abs(filters).max())
    right.set(xticks=[], yticks=[], title="Filters of the first layer")
    right.spines[:].set_visible(False)
    for ax in (left, middle, right):
        ax.title.set_size(10)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main(options):
    x, y, x_test, y_test = load(options.seed)
    times = []
    data = watched(batches(x, y, options.batch_size, options.steps, options.seed), options.steps, times)
    train = {"pure": train_pure, "torch": train_torch}[options.style]
    predict, filters, losses = train(data, options.steps, options.lr, options.seed)

    scores = predict(x_test)
    confusion = np.zeros((10, 10), int)
    np.add.at(confusion, (y_test, scores.argmax(axis=1)), 1)
    plot(losses, confusion, filters, options.plot)
    first, rest = times[1] - times[0], times[-1] - times[1]
    speed = f", then {(options.steps - 1) * options.batch_size / rest:,.0f} images per second" if options.steps > 1 else ""
    print(f"first step {first:.1f} s{speed}; plot: {options.plot}")
    print(f"style {options.style}: loss {np.mean(losses[-20:]):.4f}, test loss {F.cross_entropy(scores, y_test):.4f}, ", end="")
    print(f"test accuracy {np.trace(confusion) / len(y_test):.4f} on {len(y_test)} held-out images")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--style", choices=("pure", "torch"), default="pure", help="how the training is written (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1500, help="minibatches (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="images per step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.002, help="learning rate at the start, then half a cosine (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the initial weights and the order (default: %(default)s)")
    parser.add_argument("--plot", type=pathlib.Path, default=pathlib.Path("lenet.png"), help="the picture (default: %(default)s)")
    args = parser.parse_args()
    if args.steps < 1 or args.batch_size < 1:
        parser.error("--steps and --batch-size must be at least 1")
    main(args)
