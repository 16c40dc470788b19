// For software adapters, where barriers cost and workgroup memory compiles slowly.
// needs: nothing
const WORKGROUP = 64u;
const AT_ONCE = 1u;
