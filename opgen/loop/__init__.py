"""The one loop IR, for CPU and GPU, for ops and graphs.

`nodes` defines its meaning; `build` and `walk` make and rewrite it; `print` and `parse` are its text; `verify` checks
it; `interpret` defines it by running it; `analysis` proves things about it; `bind` specialises it.  Import from the
submodules.
"""
