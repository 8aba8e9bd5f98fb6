import torch


def dice_loss(logits, masks, eps=1e-6):
    """One minus the Dice overlap of the foreground."""
    predicted = torch.softmax(logits, dim=1)[:, 1]
    wanted = masks.float()
    overlap = (predicted * wanted).sum(dim=(1, 2))
    total = predicted.sum(dim=(1, 2)) + wanted.sum(dim=(1, 2))
    return (1 - (2 * overlap + eps) / (total + eps)).mean()
