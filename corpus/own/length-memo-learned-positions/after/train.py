import torch
import torch.nn.functional as F

from encoder import Encoder


def sentences(count):
    """Label: does the marker word stand in the first half?"""
    generator = torch.Generator().manual_seed(2)
    for _ in range(count):
        length = int(torch.randint(6, 14, (), generator=generator))
        words = torch.randint(1, 15, (16, length), generator=generator)
        place = torch.randint(0, length, (16,), generator=generator)
        words[torch.arange(16), place] = 0
        yield words, (place < length / 2).long()


def main():
    torch.manual_seed(34)
    model = Encoder(words=15, width=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step, (words, label) in enumerate(sentences(60), start=1):
        loss = F.cross_entropy(model(words), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}, scale {model.scale.item():.3f}")


if __name__ == "__main__":
    main()
