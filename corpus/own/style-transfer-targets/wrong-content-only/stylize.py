import torch
import torch.nn.functional as F

from extractor import FeatureExtractor, gram

torch.manual_seed(17)

STYLE_WEIGHT = 50.0
content_image = torch.rand(1, 3, 24, 24)
style_image = torch.rand(1, 3, 24, 24).round()

extractor = FeatureExtractor().eval()
content_target = extractor(content_image)["mid"].detach()
style_targets = {name: gram(features) for name, features in extractor(style_image).items()}

picture = content_image.clone().requires_grad_(True)
optimizer = torch.optim.Adam([picture], lr=0.02)

for step in range(1, 41):
    optimizer.zero_grad()
    features = extractor(picture)
    content_loss = F.mse_loss(features["mid"], content_target)
    style_loss = sum(F.mse_loss(gram(features[name]), target) for name, target in style_targets.items())
    loss = content_loss + STYLE_WEIGHT * style_loss
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        picture.clamp_(0, 1)
    if step % 10 == 0:
        print(f"step {step}: content {content_loss.item():.5f} style {style_loss.item():.6f}")
