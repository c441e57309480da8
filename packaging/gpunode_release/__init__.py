"""What a release is made of, and how each file of it comes about. `scripts/release` runs it; users have none of it."""
