"""Settings in layers: defaults, the person's file, the project's file, environment, command line."""
