"""A notebook's cells: how they run, what they show, what they ask of whoever is in front."""
