// The row where a second kind of weights begins. It is a file of its own, and the first of its kernel,
// because naga fails on an override behind an array whose length is computed from others.
// needs: nothing

override FIRST_PAIRS: u32 = 64u;  // pairs of rows of the first kind, a multiple of GROUP_PAIRS
