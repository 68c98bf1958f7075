"""The kinds of plans, one a file.  None knows another."""
