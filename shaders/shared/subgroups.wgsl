// Stands first in kernels whose invocations work together without workgroup memory.
// needs: nothing
enable subgroups;
