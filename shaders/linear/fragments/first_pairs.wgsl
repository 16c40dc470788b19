// Where the rows of a second kind begin. A file of its own, and the first of its kernel: naga fails on an
// override behind an array whose length is computed from others.
// needs: nothing

override FIRST_PAIRS: u32 = 64u;  // of rows of the first kind: whole workgroups
