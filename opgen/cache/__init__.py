"""The cache on disk: object code and other results that processes share."""
