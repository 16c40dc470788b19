// As many as every device allows.
const WORKGROUP = 256u;
