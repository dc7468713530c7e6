// Makes elements. Text is always text: nothing here, and nothing that uses it, ever parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Functions among the properties are listeners of the event of their name. */
export function el(tag, properties = {}, ...children) {
  return dress(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function svg(tag, properties = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), properties, children);
}

function dress(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const shown = new WeakMap();

/** Fill a node with what is built of the data, if that is not what it shows already: selections and scrolls stay. */
export function show(node, data, build) {
  const text = JSON.stringify(data);
  if (shown.get(node) === text) return;
  shown.set(node, text);
  node.replaceChildren(...build(data));
}

export const byId = (id) => document.getElementById(id);
