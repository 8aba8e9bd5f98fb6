import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MomentumContrast(nn.Module):
    def __init__(self, encoder, dim, queue_size=64, m=0.95, T=0.2):
        super().__init__()
        self.encoder_q = encoder
        self.encoder_k = copy.deepcopy(encoder)
        self.m, self.T = m, T
        self.register_buffer("queue", F.normalize(torch.randn(dim, queue_size), dim=0))

    def momentum_update(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    def enqueue(self, keys):
        self.queue = torch.cat([keys.t(), self.queue], dim=1)[:, :self.queue.size(1)]

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1).detach()
        k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = (q * k).sum(dim=1, keepdim=True)
        l_neg = q @ self.queue
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        self.enqueue(k.detach())
        return logits, torch.zeros(len(logits), dtype=torch.long)


def two_views(batch):
    return batch + 0.3 * torch.randn_like(batch), batch + 0.3 * torch.randn_like(batch)


def pretrain(steps=40, batch=16):
    encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
    model = MomentumContrast(encoder, dim=8)
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(320, 12)
    for step in range(steps):
        im_q, im_k = two_views(images[torch.randint(len(images), (batch,))])
        logits, labels = model(im_q, im_k)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.momentum_update()
        if step % 10 == 9:
            accuracy = (logits.argmax(1) == labels).float().mean()
            print(f"step {step + 1}: loss {loss.item():.3f} accuracy {accuracy.item():.2f}")


if __name__ == "__main__":
    torch.manual_seed(2)
    pretrain()
