# ruff: noqa: B007, E741, F821
"""A script as PyTorch users write them; `fill` gives parameters their first values."""

import copy
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Subset, TensorDataset


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride != 1 or i != o else None

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.stem = nn.Sequential(
            OrderedDict(
                [
                    ("conv", nn.Conv2d(3, 4, 7, 2, 3, bias=False)),
                    ("bn", nn.BatchNorm2d(4)),
                    ("relu", nn.ReLU(inplace=True)),
                    ("pool", nn.MaxPool2d(3, 2, 1)),
                ]
            )
        )
        self.layer1 = nn.Sequential(BasicBlock(4, 4), BasicBlock(4, 4))
        self.layer2 = nn.Sequential(BasicBlock(4, 8, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


rng = np.random.RandomState(1)
model = ResNet()
fill(torch, model)
state = copy.deepcopy(model.state_dict())
model2 = ResNet(2)
del state["fc.weight"], state["fc.bias"]
print(model2.load_state_dict(state, strict=False))
for name, p in model2.named_parameters():
    if not name.startswith(("layer2", "fc")):
        p.requires_grad = False
num_ftrs = model2.fc.in_features
model2.fc = nn.Sequential(nn.Dropout(0.0), nn.Linear(num_ftrs, 2))
with torch.no_grad():
    model2.fc[1].weight.copy_(torch.linspace(-1, 1, 16).view(2, 8))
    nn.init.zeros_(model2.fc[1].bias)
print([n for n, p in model2.named_parameters() if p.requires_grad])
opt = optim.SGD(
    [{"params": model2.layer2.parameters()}, {"params": model2.fc.parameters(), "lr": 1e-2, "weight_decay": 0.0}],
    lr=1e-3,
    momentum=0.9,
    weight_decay=1e-4,
    nesterov=True,
)
sched = lr_scheduler.CosineAnnealingLR(opt, T_max=6)
x = torch.from_numpy(rng.rand(24, 3, 32, 32).astype("float32"))
y = torch.from_numpy((rng.rand(24) < 0.5).astype("int64"))
ds = TensorDataset(x, y)
tr, va = Subset(ds, range(16)), Subset(ds, range(16, 24))
loaders = {"train": DataLoader(tr, 4, shuffle=False), "val": DataLoader(va, 4)}
best, best_wts = 0.0, copy.deepcopy(model2.state_dict())
for epoch in range(3):
    for phase in ["train", "val"]:
        model2.train() if phase == "train" else model2.eval()
        running, corrects = 0.0, 0
        for inputs, labels in loaders[phase]:
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model2(inputs)
                _, preds = torch.max(outputs, 1)
                loss = nn.CrossEntropyLoss(label_smoothing=0.1)(outputs, labels)
                if phase == "train":
                    loss.backward()
                    opt.step()
            running += loss.item() * inputs.size(0)
            corrects += torch.sum(preds == labels.data)
        if phase == "train":
            sched.step()
        acc = corrects.double() / len(loaders[phase].dataset)
        print(f"{phase} Loss: {running / len(loaders[phase].dataset):.4f} Acc: {acc:.4f} {[round(l, 6) for l in sched.get_last_lr()]}")
        if phase == "val" and acc > best:
            best, best_wts = acc, copy.deepcopy(model2.state_dict())
model2.load_state_dict(best_wts)
feats = []
h = model2.avgpool.register_forward_hook(lambda m, i, o: feats.append(o.detach().flatten(1)))
model2.eval()
model2(x[:2])
h.remove()
print(feats[0].shape, [round(v, 4) for v in feats[0][0].tolist()])
