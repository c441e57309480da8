"""Packages for a site without a network, as one file: made where there is one, verified where it is used."""
