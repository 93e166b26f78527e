# ruff: noqa: F821, UP031
"""A script as PyTorch users write them; `fill` gives parameters their first values."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable

rng = np.random.RandomState(0)
latent, size = 8, 12


def block(i, o, normalize=True):
    layers = [nn.Linear(i, o)]
    if normalize:
        layers.append(nn.BatchNorm1d(o, 0.8))
    layers.append(nn.LeakyReLU(0.2, inplace=True))
    return layers


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(*block(latent, 16, False), *block(16, 32), nn.Linear(32, size), nn.Tanh())

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(size, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, x):
        return self.model(x)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight.data, 0.0, 0.02)
        nn.init.constant_(m.bias.data, 0)
    elif m.__class__.__name__.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight.data, 1.0, 0.02)
        torch.nn.init.constant_(m.bias.data, 0.0)


G, D = Generator(), Discriminator()
G.apply(weights_init)
D.apply(weights_init)
fill(torch, G)
fill(torch, D)
loss_fn = torch.nn.BCELoss()
oG = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
oD = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
FloatTensor = torch.FloatTensor
for step in range(30):
    imgs = torch.tensor(np.sin(np.arange(size) / 2 + rng.rand(16, 1)), dtype=torch.float32)
    valid = Variable(FloatTensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
    fake = Variable(FloatTensor(imgs.size(0), 1).fill_(0.0), requires_grad=False)
    oG.zero_grad()
    z = Variable(FloatTensor(rng.normal(0, 1, (imgs.shape[0], latent))))
    gen = G(z)
    g_loss = loss_fn(D(gen), valid)
    g_loss.backward()
    oG.step()
    oD.zero_grad()
    real = loss_fn(D(imgs), valid)
    fk = loss_fn(D(gen.detach()), fake)
    d_loss = (real + fk) / 2
    d_loss.backward()
    oD.step()
    # gradient penalty
    if step % 10 == 9:
        alpha = torch.from_numpy(rng.rand(16, 1).astype(np.float32))
        inter = (alpha * imgs + (1 - alpha) * gen.detach()).requires_grad_(True)
        out = D(inter)
        grads = torch.autograd.grad(
            outputs=out, inputs=inter, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True, only_inputs=True
        )[0]
        gp = ((grads.view(grads.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
        oD.zero_grad()
        gp.backward()
        oD.step()
        print("[%d] D %.4f G %.4f gp %.5f" % (step, d_loss.item(), g_loss.item(), gp.item()))
