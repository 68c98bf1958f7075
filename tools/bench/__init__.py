"""The benchmark: this project against installed libraries and against the machine's own limits, in one sitting."""
