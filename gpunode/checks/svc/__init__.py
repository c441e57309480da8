"""The services around the driver: what brings up the links between GPUs, keeps the driver's state, and watches."""
