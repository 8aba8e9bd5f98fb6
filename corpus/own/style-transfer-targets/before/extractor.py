import torch.nn as nn


class FeatureExtractor(nn.Module):
    """Stand-in for the lower blocks of a pretrained classifier."""

    def __init__(self):
        super().__init__()
        self.low = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.high = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())

    def forward(self, image):
        features = {}
        for name in ("low", "mid", "high"):
            image = getattr(self, name)(image)
            features[name] = image
        return features


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.size(1) / flat.size(2)
