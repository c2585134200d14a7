"""Our encodings in models of other libraries: GPT-2 and Llama of transformers, and timm's vision transformer."""
