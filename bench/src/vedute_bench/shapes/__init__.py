"""Furniture, cars, airplanes and rifles, drawn from five sides."""
