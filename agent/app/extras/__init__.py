"""What a project and a person bring along: skills, custom commands, hooks, and the trust in them."""
