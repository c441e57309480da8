"""The steps that install and remove packages: driver, CUDA, container toolkit."""
