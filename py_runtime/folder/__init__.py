"""Model folders (docs/blob.md): manifest, headers and weights, on a disk or behind a URL."""
