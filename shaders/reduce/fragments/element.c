// The element types of reductions.

#include "kernel.h"
#include "reduce/element.h"

FRAGMENT(Element, reduce_fragments_element_f32) = {0};
FRAGMENT(Element, reduce_fragments_element_i32) = {1};
