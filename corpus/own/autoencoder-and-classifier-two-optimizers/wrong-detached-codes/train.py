import torch
import torch.nn.functional as F

from model import Classifier, Decoder, Encoder


def batches(count, size):
    centres = torch.randn(3, 10)
    for _ in range(count):
        labels = torch.randint(0, 3, (size,))
        yield centres[labels] + 0.7 * torch.randn(size, 10), labels


def main():
    torch.manual_seed(92)
    encoder, decoder, classifier = Encoder(10, 4), Decoder(4, 10), Classifier(4, 3)
    ae_optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    cls_optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
    ae_schedule = torch.optim.lr_scheduler.StepLR(ae_optimizer, 20, gamma=0.5)

    for step, (inputs, labels) in enumerate(batches(60, 32), start=1):
        codes = encoder(inputs)
        reconstruction = F.mse_loss(decoder(codes), inputs)
        classification = F.cross_entropy(classifier(codes.detach()), labels)

        ae_optimizer.zero_grad()
        cls_optimizer.zero_grad()
        reconstruction.backward()
        classification.backward()
        ae_optimizer.step()
        cls_optimizer.step()
        ae_schedule.step()
        if step % 20 == 0:
            print(f"{step}: reconstruction {reconstruction.item():.3f} classes {classification.item():.3f}")


if __name__ == "__main__":
    main()
