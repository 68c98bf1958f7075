"""Copies that the scheduler has made: of what lanes read, of what crowds a cache, of results."""
