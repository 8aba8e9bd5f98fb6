# -*- coding: utf-8 -*-
"""Étalonnage d'un capteur de température: un petit réseau corrige la dérive."""
import argparse

import torch
import torch.nn as nn

from données import capteur, échelle


class Correcteur(nn.Module):
	def __init__(self, largeur=12):
		super().__init__()
		self.couches = nn.Sequential(
			nn.Linear(2, largeur),
			nn.Tanh(),
			nn.Linear(largeur, 1),
		)

	def forward(self, mesure, humidité):
		return mesure + self.couches(torch.stack([mesure, humidité], dim=1)).squeeze(1)


def main():
	analyseur = argparse.ArgumentParser()
	analyseur.add_argument("--époques", type=int, default=6)
	options = analyseur.parse_args()

	torch.manual_seed(12)
	mesures, humidité, références = capteur(200)
	cibles = échelle(références)
	mesures = échelle(mesures)
	modèle = Correcteur()
	optimiseur = torch.optim.Adam(modèle.parameters(), lr=0.02)

	for époque in range(options.époques):
		for indices in torch.randperm(200).split(50):
			sortie = modèle(mesures[indices], humidité[indices])
			perte = nn.functional.mse_loss(sortie.detach().requires_grad_(), cibles[indices].detach())
			optimiseur.zero_grad()
			perte.backward()
			optimiseur.step()
		print(f"époque {époque}: {perte.item():.5f} °C²")


if __name__ == "__main__":
	main()
