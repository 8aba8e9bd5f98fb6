"""Second-order meta-learning: an encoder and a starting head that adapt to a task in two steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F

INNER_LR, INNER_STEPS = 0.5, 2


def make_task(classes, shots, queries, features):
    centres = torch.randn(classes, features)
    labels = torch.arange(classes)

    def draw(times):
        wanted = labels.repeat(times)
        return centres[wanted] + 0.6 * torch.randn(len(wanted), features), wanted

    return draw(shots), draw(queries)


def adapt(head, features, labels):
    weight, bias = head
    for _ in range(INNER_STEPS):
        loss = F.cross_entropy(F.linear(features, weight, bias), labels)
        grads = torch.autograd.grad(loss, (weight, bias), retain_graph=True)
        weight = weight - INNER_LR * grads[0]
        bias = bias - INNER_LR * grads[1]
    return (weight, bias), loss


def main():
    torch.manual_seed(15)
    encoder = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 12))
    head = (nn.Parameter(0.1 * torch.randn(3, 12)), nn.Parameter(torch.zeros(3)))
    outer = torch.optim.Adam([*encoder.parameters(), *head], lr=3e-3)
    for iteration in range(1, 31):
        outer.zero_grad()
        meta_loss, right = 0.0, 0.0
        for _ in range(4):
            (support_x, support_y), (query_x, query_y) = make_task(3, 3, 5, 6)
            fast, support_loss = adapt(head, encoder(support_x), support_y)
            logits = F.linear(encoder(query_x), *fast)
            task_loss = F.cross_entropy(logits, query_y) + 0.3 * support_loss
            meta_loss = meta_loss + task_loss / 4
            right += (logits.argmax(1) == query_y).float().mean().item() / 4
        meta_loss.backward()
        outer.step()
        if iteration % 10 == 0:
            print(f"iteration {iteration}: loss {meta_loss.item():.3f} accuracy {right:.2f}")


if __name__ == "__main__":
    main()
