// Times, sizes and colours.

const byId = (id) => document.getElementById(id);

/** A number in a unit with so many digits behind the point; a half is rounded up, also where it has no exact binary fraction. */
const rounded = (number, unit, digits) => (Math.round((number * 10 ** digits) / unit) / 10 ** digits).toFixed(digits);

/** A time in words, as `kiln explain` says it. */
function timeWords(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${rounded(ns, 1e3, 1)} us`;
  if (size < 1e9) return `${rounded(ns, 1e6, 1)} ms`;
  return `${rounded(ns, 1e9, 2)} s`;
}

function byteWords(bytes) {
  const size = Math.abs(bytes);
  if (size < 1024) return `${bytes} bytes`;
  if (size < 2 ** 20) return `${rounded(bytes, 2 ** 10, 1)} KiB`;
  if (size < 2 ** 30) return `${rounded(bytes, 2 ** 20, 1)} MiB`;
  return `${rounded(bytes, 2 ** 30, 2)} GiB`;
}

const countWords = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** An element with attributes and children; texts stay texts. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["back", "front", "quiet", "line", "panel", "wait", "late", "queued", "fault", "finding", "takeover", "mark", "light", "grey"];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  colours.names = new Map();
}

/** The colour of a name: neighbours in the table are far apart on the wheel. */
function nameColour(name) {
  let colour = colours.names.get(name);
  if (!colour) {
    colour = `hsl(${((name + 1) * 137.508) % 360} ${colours.grey} ${colours.light})`;
    colours.names.set(name, colour);
  }
  return colour;
}
