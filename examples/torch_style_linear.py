"""Three epochs of a linear model in PyTorch's style, written out: parameters, loss and gradients after each.

    python examples/torch_style_linear.py [--seed 0]

With `import torch` and `import torch.nn as nn` in place of the two imports of fnad the same program runs on PyTorch (and draws other
numbers).
"""

import argparse

import fnad.torch as torch
import fnad.torch.nn as nn


def main(seed):
    torch.manual_seed(seed)
    model = nn.Linear(2, 1)
    criterion = nn.MSELoss()
    inputs = torch.randn(10, 2, requires_grad=False)
    targets = torch.randn(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    print("Model parameters before training:")
    for name, param in model.named_parameters():
        print(f"{name}: {param.data}")

    for epoch in range(3):
        model.train()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        print(f"\nEpoch {epoch + 1}, Loss: {loss.item()}")

        optimizer.zero_grad()  # forget the gradients of the last epoch
        loss.backward()  # compute new ones
        optimizer.step()  # parameter = parameter - lr * gradient

        print(f"Model parameters and gradients after epoch {epoch + 1}:")
        for name, param in model.named_parameters():
            print(f"{name}: {param.data}, requires_grad: {param.requires_grad}")
            if param.grad is not None:
                print(f"{name} gradient: {param.grad}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
