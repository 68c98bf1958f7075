"""Copies that the scheduler has made: of what lanes read, of what conflicts in a cache, of results."""
