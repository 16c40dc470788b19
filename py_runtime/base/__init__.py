"""What every room stands on: errors, element types, shapes, cancelling, progress, notices."""
