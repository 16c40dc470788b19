// Sixteen columns of a weight: two octets that lie side by side.
// needs: nothing

struct Sixteen {
  low: mat2x4f,
  high: mat2x4f,
}
