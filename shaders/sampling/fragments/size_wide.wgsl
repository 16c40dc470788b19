// As many as every device allows.
const WORKGROUP = 256u;
const AT_ONCE = 8u;
