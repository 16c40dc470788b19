// The sums of a subgroup: four matrices along its tokens, and four along its rows. Matrices stand in members, as
// compilers do not keep arrays of them in registers.
// needs: shared/matrix_units, @tiles, @STRIDE, @store_unit

const UNITS_ALONG = 4u;  // a side

struct TokenUnits {
  a: LeftUnit,
  b: LeftUnit,
  c: LeftUnit,
  d: LeftUnit,
}

// Of all tokens with the rows of one matrix.
struct UnitColumn {
  a: SumUnit,
  b: SumUnit,
  c: SumUnit,
  d: SumUnit,
}

struct UnitSums {
  a: UnitColumn,
  b: UnitColumn,
  c: UnitColumn,
  d: UnitColumn,
}

fn tokens_at(at: u32) -> TokenUnits {
  return TokenUnits(
    subgroupMatrixLoad<LeftUnit, row_major>(&tiles, at, STRIDE),
    subgroupMatrixLoad<LeftUnit, row_major>(&tiles, at + UNIT_SIDE * STRIDE, STRIDE),
    subgroupMatrixLoad<LeftUnit, row_major>(&tiles, at + 2u * UNIT_SIDE * STRIDE, STRIDE),
    subgroupMatrixLoad<LeftUnit, row_major>(&tiles, at + 3u * UNIT_SIDE * STRIDE, STRIDE),
  );
}

fn with_products(tokens: TokenUnits, rows: u32, sums: UnitColumn) -> UnitColumn {
  let right = subgroupMatrixLoad<RightUnit, col_major>(&tiles, rows, STRIDE);
  return UnitColumn(
    subgroupMatrixMultiplyAccumulate(tokens.a, right, sums.a),
    subgroupMatrixMultiplyAccumulate(tokens.b, right, sums.b),
    subgroupMatrixMultiplyAccumulate(tokens.c, right, sums.c),
    subgroupMatrixMultiplyAccumulate(tokens.d, right, sums.d),
  );
}

// Sums with the products of what begins at two places of the tiles.
fn accumulated(first_token: u32, first_row: u32, sums: UnitSums) -> UnitSums {
  let tokens = tokens_at(first_token);
  return UnitSums(
    with_products(tokens, first_row, sums.a),
    with_products(tokens, first_row + UNIT_SIDE * STRIDE, sums.b),
    with_products(tokens, first_row + 2u * UNIT_SIDE * STRIDE, sums.c),
    with_products(tokens, first_row + 3u * UNIT_SIDE * STRIDE, sums.d),
  );
}

fn store_column(sums: UnitColumn, token: u32, pair: u32, subgroup: u32, member: u32) {
  store_unit(sums.a, token, pair, subgroup, member);
  store_unit(sums.b, token + UNIT_SIDE, pair, subgroup, member);
  store_unit(sums.c, token + 2u * UNIT_SIDE, pair, subgroup, member);
  store_unit(sums.d, token + 3u * UNIT_SIDE, pair, subgroup, member);
}

fn store_sums(sums: UnitSums, token: u32, pair: u32, subgroup: u32, member: u32) {
  store_column(sums.a, token, pair, subgroup, member);
  store_column(sums.b, token, pair + UNIT_SIDE / 2u, subgroup, member);
  store_column(sums.c, token, pair + UNIT_SIDE, subgroup, member);
  store_column(sums.d, token, pair + 3u * UNIT_SIDE / 2u, subgroup, member);
}
