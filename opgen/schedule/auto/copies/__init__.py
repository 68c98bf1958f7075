"""Copies that the scheduler makes: of the lanes' operands, of data that conflicts in a cache, of results."""
