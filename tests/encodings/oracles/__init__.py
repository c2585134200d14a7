"""Encodings compared with those of public packages: `make oracle`. Nothing of these packages is in ours."""
