// The directive of kernels that use subgroup operations; it stands first.
// needs: nothing
enable subgroups;
