import torch
import torch.nn as nn

torch.manual_seed(43)


class Mapper(nn.Module):
    def __init__(self, noise_size=4, code_size=8):
        super().__init__()
        self.noise_size = noise_size
        self.layers = nn.Sequential(nn.Linear(noise_size, 16), nn.ReLU(), nn.Linear(16, code_size))

    def forward(self, noise):
        return self.layers(noise)


pictures = torch.rand(12, 10)
mapper, decoder = Mapper(), nn.Linear(8, 10)
optimizer = torch.optim.Adam([*mapper.parameters(), *decoder.parameters()], lr=1e-2)

# one code for each picture
for step in range(40):
    codes = mapper(torch.randn(len(pictures), mapper.noise_size))
    loss = nn.functional.mse_loss(decoder(codes), pictures)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: {loss.item():.4f}")
