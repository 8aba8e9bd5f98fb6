import random

import torch


class ImagePool:
    """A history of generated images; the discriminator sees old ones half of the time."""

    def __init__(self, size, seed=0):
        self.size = size
        self.images = []
        self.random = random.Random(seed)

    def query(self, images):
        chosen = []
        for image in images:
            if len(self.images) < self.size:
                self.images.append(image)
                chosen.append(image)
            elif self.random.random() < 0.5:
                index = self.random.randrange(self.size)
                chosen.append(self.images[index])
                self.images[index] = image
            else:
                chosen.append(image)
        return torch.stack(chosen)
