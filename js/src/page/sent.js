/** What Python sent: the JSON of to_json, in bytes, which Streamlit hands on as they are. */
export function sent(data) {
  return JSON.parse(new TextDecoder().decode(data));
}
