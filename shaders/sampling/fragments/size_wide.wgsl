// As many as every device allows.
// needs: nothing
const WORKGROUP = 256u;
const AT_ONCE = 8u;
