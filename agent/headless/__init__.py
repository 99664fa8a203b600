"""Fronts without a screen: human text, one JSON object, or a line per event."""
