// The settings of an earlier visit. Fetched when there was one.

/**
 * What an older page kept, or anybody: what cannot be stays as it is.
 * @param {HTMLInputElement[]} fields
 * @param {string} kept
 */
export function fill(fields, kept) {
  const found = JSON.parse(kept);
  for (const [name, value] of found.chosen ?? found) { // the first version was a list
    const field = fields.find((each) => each.name === name);
    const before = field?.value;
    if (field) field.value = value;
    if (field && (field.value !== value || !field.checkValidity())) field.value = before ?? "";
  }
}
