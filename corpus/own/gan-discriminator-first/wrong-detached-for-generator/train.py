import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--niter", type=int, default=2, help="number of epochs")
parser.add_argument("--nz", type=int, default=8, help="size of the latent vector")
parser.add_argument("--ngf", type=int, default=8)
parser.add_argument("--ndf", type=int, default=8)
parser.add_argument("--batchSize", type=int, default=16)
parser.add_argument("--manualSeed", type=int, default=999)


def weights_init(module):
    if "Conv" in module.__class__.__name__:
        nn.init.normal_(module.weight, 0.0, 0.05)


def build(opt):
    netG = nn.Sequential(
        nn.ConvTranspose2d(opt.nz, opt.ngf * 2, 4, 1, 0), nn.BatchNorm2d(opt.ngf * 2), nn.ReLU(True),
        nn.ConvTranspose2d(opt.ngf * 2, 1, 4, 2, 1), nn.Tanh(),
    )
    netD = nn.Sequential(
        nn.Conv2d(1, opt.ndf, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(opt.ndf, 1, 4, 1, 0), nn.Flatten(0),
    )
    return netG.apply(weights_init), netD.apply(weights_init)


def crosses(count):
    pictures = -torch.ones(count, 1, 8, 8)
    pictures[:, :, 3:5, :] = 0.8
    pictures[:, :, :, 3:5] = 0.8
    return pictures + 0.1 * torch.randn_like(pictures)


def main():
    opt = parser.parse_args()
    torch.manual_seed(opt.manualSeed)
    netG, netD = build(opt)
    criterion = nn.BCEWithLogitsLoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
    dataloader = DataLoader(TensorDataset(crosses(160)), batch_size=opt.batchSize, shuffle=True)

    for epoch in range(opt.niter):
        for i, (real,) in enumerate(dataloader):
            real_label, fake_label = torch.ones(len(real)), torch.zeros(len(real))
            netD.zero_grad()
            errD_real = criterion(netD(real), real_label)
            fake = netG(torch.randn(len(real), opt.nz, 1, 1))
            errD_fake = criterion(netD(fake), fake_label)
            errD = errD_real + errD_fake
            errD.backward()
            optimizerD.step()

            netG.zero_grad()
            errG = criterion(netD(fake.detach()), real_label)
            errG.backward()
            optimizerG.step()
        print(f"[{epoch}/{opt.niter}] Loss_D: {errD.item():.4f} Loss_G: {errG.item():.4f}")


if __name__ == "__main__":
    main()
