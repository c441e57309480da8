"""The container engines: does the running daemon, not only its file, have the nvidia runtime?"""
