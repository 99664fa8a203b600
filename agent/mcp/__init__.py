"""Model Context Protocol: other people's tools, from programs and addresses that a person configured."""
