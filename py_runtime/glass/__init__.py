"""A running model, seen and changed from inside: what `inpage.glass` offers."""
