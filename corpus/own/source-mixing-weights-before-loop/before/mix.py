import torch

torch.manual_seed(10)

hours = torch.arange(0, 240).float()
load = 5 + 2 * torch.sin(hours * 2 * torch.pi / 24) + 0.02 * hours + 0.3 * torch.randn(240)

# three simple forecasters, fitted elsewhere
yesterday = torch.roll(load, 24)
last_hour = torch.roll(load, 1)
seasonal = 6 + 2.2 * torch.sin(hours * 2 * torch.pi / 24)
forecasts = torch.stack([yesterday, last_hour, seasonal])[:, 24:]
truth = load[24:]

mixing = torch.zeros(3, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([mixing, bias], lr=0.05)

temperature = 0.7
weights = torch.softmax(mixing / temperature, dim=0)

for epoch in range(60):
    combined = (weights[:, None] * forecasts).sum(dim=0) + bias
    loss = (combined - truth).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        shown = ", ".join(f"{w:.3f}" for w in weights.tolist())
        print(f"epoch {epoch + 1}: mae {loss.item():.4f} weights {shown}")
