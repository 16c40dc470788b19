// Eight tokens loaded by every invocation for itself, for devices without subgroups.
// needs: linear/fragments/tokens

fn eight_tokens(token: u32, octet: u32, lane: u32) -> Tokens {
  return Tokens(
    live_octet(token, octet),
    live_octet(token + 1u, octet),
    live_octet(token + 2u, octet),
    live_octet(token + 3u, octet),
    live_octet(token + 4u, octet),
    live_octet(token + 5u, octet),
    live_octet(token + 6u, octet),
    live_octet(token + 7u, octet),
  );
}
