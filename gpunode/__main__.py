"""python -m gpunode."""

from gpunode.cli.app import run

if __name__ == "__main__":
    run()
