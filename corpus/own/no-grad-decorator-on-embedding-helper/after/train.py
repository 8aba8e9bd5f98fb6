import torch
import torch.nn.functional as F

from retrieval import TwoTower, embed, pairs


@torch.no_grad()
def evaluate(model, queries, documents):
    model.eval()
    scores = embed(model, queries, "query") @ embed(model, documents, "document").t()
    model.train()
    return (scores.argmax(dim=1) == torch.arange(len(queries))).float().mean().item()


def main():
    torch.manual_seed(44)
    mapping = torch.randn(12, 12) / 12 ** 0.5
    model = TwoTower(12, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    held_out = pairs(64, mapping)
    print(f"before: recall {evaluate(model, *held_out):.2f}")
    for step in range(60):
        queries, documents = pairs(32, mapping)
        logits = 6 * embed(model, queries, "query") @ embed(model, documents, "document").t()
        loss = F.cross_entropy(logits, torch.arange(len(logits)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1}: loss {loss.item():.3f} recall {evaluate(model, *held_out):.2f}")


if __name__ == "__main__":
    main()
