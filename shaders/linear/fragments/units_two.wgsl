// The sums of a subgroup: two matrices along its tokens, and two along its rows. See units_four.wgsl.
// needs: shared/matrix_units, @tiles, @STRIDE, @store_unit

const UNITS_ALONG = 2u;  // a side

// Of the first or second tokens with the first or second rows.
struct UnitSums {
  first_first: SumUnit,
  second_first: SumUnit,
  first_second: SumUnit,
  second_second: SumUnit,
}

// Sums with the products of what begins at two places of the tiles.
fn accumulated(first_token: u32, first_row: u32, sums: UnitSums) -> UnitSums {
  let first = subgroupMatrixLoad<LeftUnit, row_major>(&tiles, first_token, STRIDE);
  let second = subgroupMatrixLoad<LeftUnit, row_major>(&tiles, first_token + UNIT_SIDE * STRIDE, STRIDE);
  let first_rows = subgroupMatrixLoad<RightUnit, col_major>(&tiles, first_row, STRIDE);
  let second_rows = subgroupMatrixLoad<RightUnit, col_major>(&tiles, first_row + UNIT_SIDE * STRIDE, STRIDE);
  return UnitSums(
    subgroupMatrixMultiplyAccumulate(first, first_rows, sums.first_first),
    subgroupMatrixMultiplyAccumulate(second, first_rows, sums.second_first),
    subgroupMatrixMultiplyAccumulate(first, second_rows, sums.first_second),
    subgroupMatrixMultiplyAccumulate(second, second_rows, sums.second_second),
  );
}

fn store_sums(sums: UnitSums, token: u32, pair: u32, subgroup: u32, member: u32) {
  store_unit(sums.first_first, token, pair, subgroup, member);
  store_unit(sums.second_first, token + UNIT_SIDE, pair, subgroup, member);
  store_unit(sums.first_second, token, pair + UNIT_SIDE / 2u, subgroup, member);
  store_unit(sums.second_second, token + UNIT_SIDE, pair + UNIT_SIDE / 2u, subgroup, member);
}
