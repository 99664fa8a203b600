"""From a profile to a server that answers, and what is watched, remembered and mended about it."""
