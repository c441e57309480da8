"""How the GPUs do: what the driver says of each (nvidia-smi), memory, clocks and power, links and use."""
