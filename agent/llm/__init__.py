"""Talking to a model server: requests, streams, tool protocols and figures."""
