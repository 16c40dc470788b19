"""Images without torch: decoded, cut into tiles, and the tower that makes rows of them."""
