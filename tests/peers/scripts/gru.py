# ruff: noqa: E501, F821, RUF059
"""A script as PyTorch users write them; `fill` gives parameters their first values."""

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

text = "the quick brown fox jumps over the lazy dog. " * 20
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)


class CharGRU(nn.Module):
    def __init__(self, vocab: int, emb: int = 8, hidden: int = 16, layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb)
        self.rnn = nn.GRU(emb, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)
        self.hidden, self.layers = hidden, layers

    def init_hidden(self, n: int) -> Tensor:
        weight = next(self.parameters())
        return weight.new_zeros(self.layers, n, self.hidden)

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out, h = self.rnn(self.embed(x), h)
        return self.head(out.contiguous().view(-1, self.hidden)), h


model = CharGRU(len(chars))
fill(torch, model)
opt = torch.optim.RMSprop(model.parameters(), lr=5e-3, momentum=0.5)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
crit = nn.CrossEntropyLoss()
n, T = 4, 20
rows = data[: (len(data) // n) * n].view(n, -1)
for epoch in range(4):
    h = model.init_hidden(n)
    total = 0.0
    for i in range(0, rows.size(1) - T - 1, T):
        x, y = rows[:, i : i + T], rows[:, i + 1 : i + 1 + T].reshape(-1)
        h = h.detach()
        logits, h = model(x, h)
        loss = crit(logits, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 0.25)
        opt.step()
        total += loss.item()
    sched.step(total)
    print(
        f"epoch {epoch} loss {total:.4f} ppl {torch.exp(torch.tensor(total / (i // T + 1))):.3f} norm {norm:.4f} lr {opt.param_groups[0]['lr']:.4f}"
    )


@torch.no_grad()
def sample(start="t", k=30, temperature=0.5):
    model.eval()
    out = start
    h = None
    x = torch.tensor([[stoi[start]]])
    for _ in range(k):
        logits, h = model(x, h)
        p = torch.softmax(logits[-1] / temperature, dim=-1)
        top, idx = p.topk(3)
        out += chars[idx[0].item()]
        x = idx[:1].unsqueeze(0)
    return out


print(sample())
g = torch.Generator().manual_seed(0)
print(torch.multinomial(torch.ones(3), 2, generator=g).shape)
