"""Programs: kernels, memory plan and entry; loaded, run, recorded and explained."""
