"""`make bench`: inpage beside the engines people know, on the same weights in the same browser."""
