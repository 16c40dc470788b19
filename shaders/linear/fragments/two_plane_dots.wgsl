// Products of bytes with two int8 planes of x.
// needs: nothing

// The integer dot product of 16 columns.
fn whole(bytes: vec4u, even: vec4u, odd: vec4u) -> i32 {
  let high = dot4I8Packed(bytes.x, even.x) + dot4I8Packed(bytes.y, even.y)
    + dot4I8Packed(bytes.z, odd.x) + dot4I8Packed(bytes.w, odd.y);
  let low = dot4I8Packed(bytes.x, even.z) + dot4I8Packed(bytes.y, even.w)
    + dot4I8Packed(bytes.z, odd.z) + dot4I8Packed(bytes.w, odd.w);
  return 256 * high + low;
}
