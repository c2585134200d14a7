"""Training of one run: its Lightning Trainer and callbacks, what is measured on it, and its record."""

from pebench.compat import import_torchvision

import_torchvision()  # before Lightning, which imports it
