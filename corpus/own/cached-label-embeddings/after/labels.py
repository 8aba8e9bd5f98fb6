import torch

LABELS = ["red car", "blue car", "red boat", "blue boat", "green boat"]
_generator = torch.Generator().manual_seed(4)
_WORDS = {w: torch.randn(10, generator=_generator) for label in LABELS for w in label.split()}


def sample(count):
    targets = torch.randint(len(LABELS), (count,))
    clean = torch.stack([sum(_WORDS[w] for w in LABELS[t].split()) for t in targets.tolist()])
    return clean + 0.5 * torch.randn(count, 10), targets
