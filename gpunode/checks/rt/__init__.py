"""The container engines: does the running daemon, not only its file, know the nvidia runtime?"""
