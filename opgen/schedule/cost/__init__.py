"""What a schedule costs on a machine: memory, execution, and the constants that were measured."""
