// A number in a field, one step further. mha_viz/core/typed_number.py reads what is written here.

/** The text one step `by` (1 or −1) of its last digit further, not below zero; null where none leads further. */
export function stepped(text, by) {
  const found = /^\s*([0-9]+)(?:\.([0-9]*))?(?:[eE]\+?([0-9]{1,2}))?\s*$/.exec(text);
  if (!found) return null;
  let [, whole, decimals = "", power = "0"] = found;
  while (+power > 0) {
    whole += decimals[0] ?? "0";
    decimals = decimals.slice(1);
    power--;
  }
  const number = BigInt(whole + decimals) + BigInt(by); // as exact as what is typed, however long
  if (number < 0n) return null;
  const digits = String(number).padStart(decimals.length + 1, "0");
  return decimals ? `${digits.slice(0, -decimals.length)}.${digits.slice(-decimals.length)}` : digits;
}
