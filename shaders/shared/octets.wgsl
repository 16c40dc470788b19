// Octets of a weight or of x: eight columns, four in a vector.
// needs: nothing

fn octet_dot(weights: mat2x4f, values: mat2x4f) -> f32 {
  return dot(weights[0], values[0]) + dot(weights[1], values[1]);
}

fn octet_sum(octet: mat2x4f) -> f32 {
  return dot(octet[0] + octet[1], vec4f(1.0));
}
