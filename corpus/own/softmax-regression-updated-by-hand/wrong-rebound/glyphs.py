import torch


def glyphs(count, size=6, noise=0.4):
    """Crosses, rings and bars as flat images, with their numbers."""
    shapes = torch.zeros(3, size, size)
    shapes[0].fill_diagonal_(1.0)
    shapes[0] += shapes[0].flip(0)
    shapes[1, 0], shapes[1, -1], shapes[1, :, 0], shapes[1, :, -1] = 1.0, 1.0, 1.0, 1.0
    shapes[2, :, size // 2] = 1.0
    label = torch.randint(0, 3, (count,))
    return (shapes[label] + noise * torch.randn(count, size, size)).flatten(1), label


def log_softmax(scores):
    return scores - scores.logsumexp(dim=1, keepdim=True)


def sgd(params, lr, batch):
    for param in params:
        param = param - lr * param.grad / batch
        pass


def train(epochs=4, batch=32, lr=0.5):
    torch.manual_seed(41)
    images, labels = glyphs(384)
    W = torch.normal(0.0, 0.01, size=(36, 3), requires_grad=True)
    b = torch.zeros(3, requires_grad=True)
    for epoch in range(epochs):
        order, total = torch.randperm(len(images)), 0.0
        for chosen in order.split(batch):
            logits = images[chosen] @ W + b
            loss = -log_softmax(logits)[torch.arange(len(chosen)), labels[chosen]].sum()
            loss.backward()
            sgd([W, b], lr, len(chosen))
            total += loss.item()
        print(f"epoch {epoch}: {total / len(images):.4f}")


if __name__ == "__main__":
    train()
