"""Container engines: what gpunode asks of each, and how it changes their configuration."""
