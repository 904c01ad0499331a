"""A contender: the models of models.py in PyTorch. torch_peer.py MODEL eager|compile INPUT.npy..."""
import sys
import time

import lines
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 64, 5, padding=2)
        self.hidden, self.out = nn.Linear(7 * 7 * 64, 1024), nn.Linear(1024, 10)

    def forward(self, x):
        for layer in self.first, self.second:
            x = F.max_pool2d(F.relu(layer(x)), 2)
        return self.out(F.relu(self.hidden(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.short = nn.Sequential() if inputs == outputs else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.short(x) + self.norm2(self.conv2(y)))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        sizes = [(16, 16, 1)] * 3 + [(16, 32, 2), (32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 1)]
        self.blocks, self.out = nn.Sequential(*[Block(*s) for s in sizes]), nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.blocks(F.relu(self.norm(self.first(x)))).mean((2, 3)))


class Lstm(nn.Module):
    def __init__(self, units=256):
        super().__init__()
        self.cells, self.out = nn.LSTM(units, units, batch_first=True), nn.Linear(units, 10)

    def forward(self, x):
        return self.out(self.cells(x)[0][:, -1])


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1_000_000, 64, sparse=True)

    def forward(self, ids):
        return self.table(ids)


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


MODELS = {"softmax": lambda: nn.Linear(784, 10), "mlp": mlp, "lenet": LeNet, "resnet20": ResNet20, "lstm": Lstm, "embedding": Embedding}


def main():
    name, how, *paths = sys.argv[1:]
    inputs = [torch.from_numpy(np.load(p)) for p in paths]
    model = MODELS[name]()
    if inputs[0].dim() == 4:  # as NHWC lies in memory
        inputs[0] = inputs[0].permute(0, 3, 1, 2)
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def loss_of(*values):
        if name == "embedding":
            return model(values[0]).square().mean()
        return F.cross_entropy(model(values[0]), values[1])

    compute = torch.compile(loss_of) if how == "compile" else loss_of
    inputs = [i.long() if i.dtype == torch.int32 else i for i in inputs]

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = compute(*inputs)
        loss.backward()
        optimizer.step()
        return loss.item()

    began = time.perf_counter()
    step()
    lines.serve(step, {"first_ms": 1e3 * (time.perf_counter() - began), "version": torch.__version__})


main()
