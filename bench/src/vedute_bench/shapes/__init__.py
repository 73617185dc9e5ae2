"""Parametric furniture, cars, airplanes and rifles, rendered from five sides."""
