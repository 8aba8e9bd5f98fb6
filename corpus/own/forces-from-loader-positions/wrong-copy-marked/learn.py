import torch
from torch.utils.data import DataLoader, Dataset

from potential import Potential, energy_and_forces


class Clusters(Dataset):
    def __init__(self, count=96, atoms=4):
        self.positions = torch.randn(count, atoms, 3)

    def __len__(self):
        return len(self.positions)

    def __getitem__(self, index):
        positions = self.positions[index]
        pull = positions - positions.mean(dim=0)
        return {"positions": positions, "energy": pull.square().sum() / 2, "forces": -pull}


def main():
    torch.manual_seed(71)
    model = Potential()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(Clusters(), batch_size=16, shuffle=True)
    for epoch in range(4):
        for batch in loader:
            energy, forces = energy_and_forces(model, batch["positions"])
            loss = (energy - batch["energy"]).square().mean() + (forces - batch["forces"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
