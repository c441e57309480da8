"""containerd: its config.toml, versions 1 to 4, and the files that it imports."""
