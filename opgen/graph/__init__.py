"""Op graphs: whole models, from calls of ops to one program."""
