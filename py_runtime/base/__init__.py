"""The foundation of every room: errors, element types, shapes, cancelling, progress, notices."""
