# ruff: noqa: E501, F821
"""A script as PyTorch users write them; `fill` gives parameters their first values."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, n, transform=None):
        rng = np.random.RandomState(0)
        self.x = rng.rand(n, 28, 28).astype(np.float32)
        self.y = rng.randint(0, 10, n)
        for i in range(n):
            self.x[i, self.y[i] * 2 : self.y[i] * 2 + 4] += 1.0
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        img, target = torch.from_numpy(self.x[i]).unsqueeze(0), int(self.y[i])
        if self.transform is not None:
            img = self.transform(img)
        return img, target


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.bn = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.fc1 = nn.Linear(2304, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.bn(self.conv1(x)))
        x = self.conv2(x)
        x = F.relu(x, inplace=True)
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(
                f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)} ({100.0 * batch_idx / len(loader):.0f}%)]\tLoss: {loss.item():.4f}"
            )


def test(model, device, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    print(f"Test: loss {test_loss / len(loader.dataset):.4f} acc {correct}/{len(loader.dataset)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args([])
    use_cuda = torch.cuda.is_available()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    device = torch.device("cuda" if use_cuda else "cpu")
    norm = lambda t: (t - 0.5) / 0.3
    kw = {"num_workers": 1, "pin_memory": use_cuda}
    train_loader = DataLoader(Digits(96, norm), batch_size=16, shuffle=False, **kw)
    test_loader = DataLoader(Digits(48, norm), batch_size=24)
    model = Net().to(device)
    fill(torch, model)
    print(model)
    print(sum(p.numel() for p in model.parameters() if p.requires_grad))
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, 4):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()
        print(scheduler.get_last_lr())
    print([round(v, 4) for v in model.bn.running_mean.tolist()], model.bn.num_batches_tracked)


main()
