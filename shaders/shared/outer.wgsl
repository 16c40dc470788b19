// Outer products of four values with four others, added up in registers.
// needs: nothing

// Adds the values to each column, times the number that the column has in `by`.
fn with_outer(before: mat4x4f, values: vec4f, by: vec4f) -> mat4x4f {
  return mat4x4f(
    fma(values, vec4f(by.x), before[0]),
    fma(values, vec4f(by.y), before[1]),
    fma(values, vec4f(by.z), before[2]),
    fma(values, vec4f(by.w), before[3]),
  );
}
