"""The models that opgen is shown to run: their sources and their inputs."""
