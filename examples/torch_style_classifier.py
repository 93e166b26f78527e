"""A classifier of handwritten digits in PyTorch's style: momentum, weight decay, and gradients accumulated over several batches.

    python examples/torch_style_classifier.py [--epochs 30] [--batch-size 32] [--accumulation-steps 2] [--lr 0.05] [--seed 0]
                                              [--out digits_torch]

The data are the 1,797 images of 8x8 pixels that scikit-learn ships; a fifth of them is held out. A step is made after each
`--accumulation-steps` batches, from the mean of their gradients, as one batch of so many times the size would give. The loss curve is
saved as a PNG file, and the parameters as `model.npz`.
"""

import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import fnad.torch as torch
import fnad.torch.nn as nn
from fnad.torch.utils.data import DataLoader, TensorDataset


class MyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def train(model, loader, criterion, optimizer, accumulation_steps, epochs):
    """The loss of each epoch."""
    losses = []
    progress = tqdm(range(epochs), desc="epochs")
    for _ in progress:
        model.train()
        total = 0.0
        optimizer.zero_grad()
        for i, (image, label) in enumerate(loader):
            pred = model(image)
            loss = criterion(pred, label)
            total += loss.item()
            (loss / accumulation_steps).backward()  # gradients add up in .grad
            if (i + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        losses.append(total / len(loader))
        progress.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    return (model(images).argmax(1) == labels).float().mean().item()


def main(options):
    torch.manual_seed(options.seed)
    data, digits = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(data / 16, digits, test_size=0.2, random_state=options.seed, stratify=digits)
    tensors = [torch.tensor(x, dtype=torch.float32) for x in (train_x, test_x)]
    labels = [torch.tensor(y) for y in (train_y, test_y)]
    loader = DataLoader(TensorDataset(tensors[0], labels[0]), batch_size=options.batch_size, shuffle=True, drop_last=True)
    model = MyModel()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4)
    losses = train(model, loader, criterion, optimizer, options.accumulation_steps, options.epochs)

    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), out / "model.npz")
    plt.figure(figsize=(6, 4))
    plt.semilogy(range(1, len(losses) + 1), losses)
    plt.xlabel("epoch")
    plt.ylabel("loss")
    plt.tight_layout()
    plt.savefig(out / "loss.png", dpi=100)

    again = MyModel()
    again.load_state_dict(torch.load(out / "model.npz"))
    print(f"loss {losses[-1]:.4f}, test accuracy {accuracy(again, tensors[1], labels[1]):.4f} on {len(labels[1])} held-out images")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--accumulation-steps", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="digits_torch")
    main(parser.parse_args())
