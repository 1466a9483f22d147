// The browser's half of saver.py: saves what it is sent, where the serial is new since it is here.

const told = new WeakMap(); // a component's element → the serial of what it was last asked for

export default async function ({ data, parentElement }) {
  const { figure, ...asked } = JSON.parse(new TextDecoder().decode(data));
  const before = told.get(parentElement), status = parentElement.querySelector(".mha-saver");
  told.set(parentElement, asked.serial);
  if (before !== undefined && asked.serial !== before) status.textContent = (await download(figure, asked)).words;
}
