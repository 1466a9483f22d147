// What a person chose and the server has not answered yet, { serial, pressed, … } each, in its order.

/** Those that are left once the server has answered up to this serial. */
export function unanswered(choices, answered) {
  return choices.filter(({ serial }) => serial > answered);
}

/** With one more: clicks are kept until they are answered, since Streamlit keeps only the last of what reaches it while it is busy. What
 * keys merely moved to gives way to whatever follows. */
export function withChoice(choices, choice) {
  return [...choices.filter(({ pressed }) => pressed), choice];
}
