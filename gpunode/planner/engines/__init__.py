"""The steps that make container engines use the NVIDIA runtime."""
