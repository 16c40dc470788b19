// Where invocations cannot share, each loads all of them.
// needs: linear/fragments/lines

fn eight_lines(line: u32, octet: u32, lane: u32) -> Lines {
  return Lines(
    line_octet(line, octet),
    line_octet(line + 1u, octet),
    line_octet(line + 2u, octet),
    line_octet(line + 3u, octet),
    line_octet(line + 4u, octet),
    line_octet(line + 5u, octet),
    line_octet(line + 6u, octet),
    line_octet(line + 7u, octet),
  );
}
