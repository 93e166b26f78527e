# ruff: noqa: B905, F821
"""A script as PyTorch users write them; `fill` gives parameters their first values."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Classifier(nn.Module):
    def __init__(self, vocab=30, d=16, heads=4, layers=2, classes=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.pos = PositionalEncoding(d)
        layer = nn.TransformerEncoderLayer(d, heads, dim_feedforward=32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, classes)
        self.d = d

    def forward(self, x):
        mask = x == 0
        h = self.encoder(self.pos(self.emb(x) * math.sqrt(self.d)), src_key_padding_mask=mask)
        h = self.norm(h).masked_fill(mask.unsqueeze(-1), 0.0).sum(1) / (~mask).sum(1, keepdim=True).clamp(min=1)
        return self.head(h)


class Data(Dataset):
    def __init__(self):
        rng = np.random.RandomState(0)
        self.seqs = [rng.randint(1, 30, rng.randint(3, 12)) for _ in range(48)]

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return torch.as_tensor(self.seqs[i]), int(self.seqs[i].sum() % 3)


def collate(batch):
    xs, ys = zip(*batch)
    return pad_sequence(xs, batch_first=True, padding_value=0), torch.tensor(ys)


model = Classifier()
fill(torch, model)
no_decay = [p for n, p in model.named_parameters() if p.ndim < 2]
decay = [p for n, p in model.named_parameters() if p.ndim >= 2]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
loader = DataLoader(Data(), batch_size=12, collate_fn=collate)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=len(loader) * 4, pct_start=0.3)
step = 0
for epoch in range(4):
    model.train()
    for x, y in loader:
        with torch.autocast(device_type="cpu", enabled=False):
            logits = model(x)
            loss = F.cross_entropy(logits, y) / 2
        loss.backward()
        step += 1
        if step % 2 == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            opt.step()
            opt.zero_grad()
        sched.step()
    model.eval()
    with torch.inference_mode():
        acc = torch.cat([(model(x).argmax(-1) == y).float() for x, y in loader]).mean()
    print(f"{epoch} {loss.item():.4f} {acc:.3f} {sched.get_last_lr()[0]:.5f}")
torch.save(model.state_dict(), path)
m2 = Classifier()
m2.load_state_dict(torch.load(path, weights_only=True))
m2.eval()
print(torch.allclose(m2(x), model(x)), torch.equal(m2.emb.weight[0], torch.zeros(16)))
