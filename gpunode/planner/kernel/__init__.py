"""What the kernel needs: modules for each that may boot, signatures, nouveau blacklisted."""
