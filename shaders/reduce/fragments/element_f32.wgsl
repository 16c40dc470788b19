// What a kernel for several element types works on: f32.
// needs: nothing

alias Element = f32;

fn scaled(value: f32, by: f32) -> f32 {
  return value * by;
}
