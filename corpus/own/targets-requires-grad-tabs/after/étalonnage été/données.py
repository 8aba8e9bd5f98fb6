import torch


def capteur(nombre):
	"""Températures vraies entre -5 et 35 °C, et ce que le capteur en montre."""
	vraies = torch.linspace(-5, 35, nombre)
	humidité = torch.rand(nombre)
	with torch.no_grad():
		mesures = vraies + 0.8 * humidité * (vraies / 20) ** 2 + 0.1 * torch.randn(nombre)
	return mesures, humidité, vraies


def échelle(degrés):
	return torch.exp(0.01 * (degrés - 15)) - 1
