"""Train a two-layer classifier on handwritten digits, with gradients of plain NumPy code, compiled.

    python examples/train_digits.py [--epochs 60] [--batch-size 32] [--lr 0.1] [--seed 0] [--out digits] [--no-jit]

The data are the 1,797 images of 8x8 pixels that scikit-learn ships (UCI, Alpaydin & Kaynak, 1998). A fifth of them,
drawn with the seed and balanced over the digits, is held out: it is looked at once, at the end. The same seed gives the
same result. The loss curve and the digits that were taken for another are saved as PNG files.
"""

import argparse
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
from fnad.nn import functional as F

HIDDEN = 128


def init_params(rng):
    """The parameters: a dict of arrays."""
    return {
        "W1": rng.normal(size=(64, HIDDEN)) / np.sqrt(64),
        "b1": np.zeros(HIDDEN),
        "W2": rng.normal(size=(HIDDEN, 10)) / np.sqrt(HIDDEN),
        "b2": np.zeros(10),
    }


def logits(params, x):
    hidden = np.maximum(x @ params["W1"] + params["b1"], 0)
    return hidden @ params["W2"] + params["b2"]


def loss_fn(params, x, y):
    return F.cross_entropy(logits(params, x), y)


def augmented(x, rng):
    """A minibatch as it is, or (one in three) moved by up to one pixel: digits do not change by that, and the classifier learns it."""
    if rng.random() > 1 / 3:
        return x
    padded = np.pad(x.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(0, 3, size=2)
    return padded[:, down : down + 8, right : right + 8].reshape(-1, 64)


def train(x, y, epochs, batch_size, lr, seed, jit=True):
    """The trained parameters, and the loss of every minibatch as (epochs, minibatches)."""
    rng = np.random.default_rng(seed)
    batches = -(-len(x) // batch_size)
    total = epochs * batches
    optimizer = fnad.optim.sgd(lr=lambda step: lr * (1 + np.cos(np.pi * step / total)) / 2, momentum=0.9, weight_decay=1e-3)

    def step(params, state, x, y):
        loss, grads = fnad.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return fnad.optim.apply_updates(params, updates), state, loss

    step = fnad.jit(step) if jit else step
    params = init_params(rng)
    state = optimizer.init(params)
    history = np.empty((epochs, batches))
    with tqdm(total=total, unit="step") as bar:
        for epoch in range(epochs):
            for i, rows in enumerate(np.array_split(rng.permutation(len(x)), batches)):
                params, state, history[epoch, i] = step(params, state, augmented(x[rows], rng), y[rows])
                bar.update()
            bar.set_description(f"epoch {epoch + 1}/{epochs}")
            bar.set_postfix(loss=f"{history[epoch].mean():.4f}")
    return params, history


def plot_loss(history, test_loss, path):
    epochs, batches = history.shape
    fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    ax.plot(
        (np.arange(history.size) + 1) / batches,
        history.ravel(),
        ".",
        color="#6baed6",
        alpha=0.35,
        markersize=3,
        label="minibatch (one in three moved by a pixel)",
    )
    ax.plot(np.arange(epochs) + 1, history.mean(axis=1), color="#08519c", linewidth=2, label="mean of the epoch")
    ax.axhline(test_loss, color="#d94801", linestyle="--", linewidth=1.2, label="held-out digits, at the end")
    ax.set(yscale="log", xlabel="epoch", ylabel="cross-entropy", title="Training loss", xlim=(0, epochs))
    ax.grid(alpha=0.25)
    ax.legend(frameon=True, framealpha=0.9, edgecolor="none")
    ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(fig)


def plot_mistakes(x, y, probabilities, path):
    """A sheet of the misclassified images, the surest mistakes first."""
    guess = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(guess != y)
    shown = wrong[np.argsort(-probabilities[wrong, guess[wrong]])][:40]
    columns = min(max(len(shown), 3), 8)
    rows = max(-(-len(shown) // columns), 1)
    fig, axes = plt.subplots(rows, columns, figsize=(1.35 * columns, 1.75 * rows + 0.5), layout="constrained", squeeze=False)
    fig.suptitle(f"{len(wrong)} of {len(y)} held-out digits taken for another", fontsize=11)
    for ax in axes.flat[len(shown) :]:
        ax.axis("off")
    for ax, i in zip(axes.flat, shown, strict=False):
        ax.imshow(x[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("#bbbbbb")
        ax.set_title(f"{y[i]} taken for {guess[i]}\n{probabilities[i, guess[i]]:.0%} sure", fontsize=8)
    fig.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60, help="passes over the training images (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="images per step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate at the start, then a half cosine to 0 (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the initial weights and the order (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("digits"), help="directory for the plots (default: %(default)s)")
    parser.add_argument("--no-jit", dest="jit", action="store_false", help="run the steps eagerly, without compilation")
    args = parser.parse_args()
    if args.epochs < 1 or args.batch_size < 1:
        parser.error("--epochs and --batch-size must be at least 1")

    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(images / 16, labels, test_size=0.2, stratify=labels, random_state=args.seed)
    start = time.perf_counter()
    params, history = train(x, y, args.epochs, args.batch_size, args.lr, args.seed, args.jit)
    seconds = time.perf_counter() - start

    scores = logits(params, x_test)
    accuracy = np.mean(scores.argmax(axis=1) == y_test)
    probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    args.out.mkdir(parents=True, exist_ok=True)
    test_loss = loss_fn(params, x_test, y_test)
    plot_loss(history, test_loss, args.out / "loss.png")
    plot_mistakes(x_test, y_test, probabilities, args.out / "mistakes.png")
    speed = f"{args.epochs * len(x) / seconds:,.0f} images per second" + ("" if args.jit else " without jit")
    print(f"trained on {len(x)} images in {seconds:.1f} s: {history.size} steps, {speed}, loss {history[-1].mean():.4f}")
    print(f"plots: {args.out / 'loss.png'}, {args.out / 'mistakes.png'}")
    print(f"test loss {test_loss:.4f}, test accuracy {accuracy:.4f} on {len(y_test)} held-out images")


if __name__ == "__main__":
    main()
