"""The model server: profiles, model files, and the life of the server process."""
