"""Puts an encoding of pebench into a model of another library: GPT-2 and Llama of transformers, and timm's ViT."""

from pebench.adapters.swap import swap

__all__ = ["swap"]
