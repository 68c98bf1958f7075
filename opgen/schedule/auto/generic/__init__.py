"""Loop nests of unknown sizes."""
