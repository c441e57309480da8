from .plugin import *  # noqa: F403  # fixtures and hooks
