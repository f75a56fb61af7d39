"""One file a command, thin: read the config, call the library, print."""
