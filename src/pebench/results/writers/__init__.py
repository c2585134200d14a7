"""Pages as text: one module for each format."""
