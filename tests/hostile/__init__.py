"""What a hostile user, host, network or file tries, and what gpunode makes of it."""
