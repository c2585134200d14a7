"""The one trunk and the two ways into it. Nothing here knows which encoding it holds."""
