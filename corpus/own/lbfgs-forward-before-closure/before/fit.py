import torch
import torch.nn as nn

torch.manual_seed(13)
waves = torch.sin(torch.arange(40).float() / 5 + torch.arange(6).float().unsqueeze(1)).double()
inputs, targets = waves[:, :-1], waves[:, 1:]


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(1, 9)
        self.out = nn.Linear(9, 1)

    def forward(self, signal):
        h = torch.zeros(len(signal), 9, dtype=torch.double)
        c = torch.zeros(len(signal), 9, dtype=torch.double)
        outputs = []
        for step in signal.split(1, dim=1):
            h, c = self.cell(step, (h, c))
            outputs.append(self.out(h))
        return torch.cat(outputs, dim=1)


model = Sequence().double()
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

for step in range(5):
    out = model(inputs)
    loss = criterion(out, targets)

    def closure():
        print("  loss:", loss.item())
        optimizer.zero_grad()
        loss.backward()
        return loss

    optimizer.step(closure)
    print("step", step, "done")
