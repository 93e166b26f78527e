# ruff: noqa: B007, F821
"""A script as PyTorch users write them; `fill` gives parameters their first values."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

rng = np.random.RandomState(0)


class VAE(nn.Module):
    def __init__(self, d=20, h=16, z=4):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21 = nn.Linear(h, z)
        self.fc22 = nn.Linear(h, z)
        self.fc3 = nn.Linear(z, h)
        self.fc4 = nn.Linear(h, d)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        eps = torch.from_numpy(rng.normal(size=tuple(std.shape)).astype(np.float32))
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 20))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 20), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
fill(torch, model)
optimizer = optim.AdamW(model.parameters(), lr=1e-2, amsgrad=True)
lam = lambda e: 0.95**e
sched = optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lam)
X = torch.from_numpy((rng.rand(64, 4, 5) < 0.3).astype(np.float32))
loader = torch.utils.data.DataLoader(X, batch_size=16, shuffle=False, drop_last=True)
for epoch in range(4):
    tot = 0
    for i, data in enumerate(loader):
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 5.0)
        tot += loss.item()
        optimizer.step()
    sched.step()
    print(f"====> Epoch: {epoch} Average loss: {tot / len(loader.dataset):.4f}")
with torch.no_grad():
    s = model.decode(torch.linspace(-1, 1, 8).reshape(2, 4)).cpu()
    print(s.mean(), s.std(), s.view(2, 4, 5)[0, 1])
