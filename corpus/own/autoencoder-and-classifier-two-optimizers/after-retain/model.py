import torch.nn as nn


class Encoder(nn.Sequential):
    def __init__(self, inputs, code):
        super().__init__(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, code), nn.Tanh())


class Decoder(nn.Sequential):
    def __init__(self, code, outputs):
        super().__init__(nn.Linear(code, 24), nn.Tanh(), nn.Linear(24, outputs))


class Classifier(nn.Sequential):
    def __init__(self, code, classes):
        super().__init__(nn.Linear(code, classes))
