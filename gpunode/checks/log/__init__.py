"""What the kernel's log of this boot tells: its lines as facts (HostFacts.log), its numbers by catalog/xids.yaml."""
