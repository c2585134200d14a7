"""Tests that need Ray or SLURM."""
