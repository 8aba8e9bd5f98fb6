# segments of one long recording are fed one after the other; neurons keep their state
from collections import namedtuple

import torch

NeuronState = namedtuple("NeuronState", "current voltage trace")


class Spike(torch.autograd.Function):
  """Heaviside step, with the slope of a fast sigmoid on the way back."""

  @staticmethod
  def forward(ctx, potential):
    ctx.save_for_backward(potential)
    return (potential > 0).float()

  @staticmethod
  def backward(ctx, grad):
    potential, = ctx.saved_tensors
    return grad / (1 + 10 * potential.abs()) ** 2


class Readout(torch.nn.Module):
  def __init__(self, inputs, neurons, classes):
    super().__init__()
    self.synapse = torch.nn.Linear(inputs, neurons)
    self.out = torch.nn.Linear(neurons, classes)
    self.decay = torch.nn.Parameter(torch.full((neurons,), 0.8))
    self.neurons = neurons

  def start(self):
    zero = torch.zeros(self.neurons)
    return NeuronState(zero, zero, zero)

  def forward(self, segment, state):
    for event in segment:
      current = 0.7 * state.current + self.synapse(event)
      voltage = self.decay.clamp(0, 1) * state.voltage + current
      spike = Spike.apply(voltage - 1.0)
      state = NeuronState(current, voltage - spike, 0.9 * state.trace + spike)
    return self.out(state.trace), state


def segments(count, length, inputs, classes):
  rates = torch.rand(classes, inputs)
  for _ in range(count):
    label = torch.randint(classes, ())
    yield (torch.rand(length, inputs) < rates[label]).float(), label


def main():
  torch.manual_seed(8)
  model = Readout(inputs=10, neurons=20, classes=3)
  optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
  state, hits = None, 0
  for n, (segment, label) in enumerate(segments(90, 8, 10, 3), 1):
    state = state or model.start()
    scores, state = model(segment, state)
    loss = torch.nn.functional.cross_entropy(scores[None], label[None])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    hits += int(scores.argmax() == label)
    if n % 30 == 0:
      print(f"{n} segments, {hits / 30:.2f} right, loss {loss.item():.3f}")
      hits = 0


main()
