// The history of a number as a line.

import { element, timeText, visible } from "./elements.js";

const [width, height, margin] = [220, 40, 3];

/// The values that have a place in a line, oldest first: those of a history, and the present one.
export function lineValues(versions, setting) {
  const all = [...versions].reverse().concat(setting.version === null ? [] : [setting]);
  return all.map(({ value, modified }) => ({ number: Number(value), text: String(value), modified }))
    .filter(({ number, text }) => Number.isFinite(number) && text !== "" && text !== "null");
}

/// The points of a line in which each value holds until the next one: equal steps, as changes often come close together.
export function linePoints(numbers) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const step = (width - 2 * margin) / numbers.length;
  const y = (number) => high === low ? height / 2 : margin + (1 - (number - low) / (high - low)) * (height - 2 * margin);
  return numbers.flatMap((number, index) => [[margin + index * step, y(number)], [margin + (index + 1) * step, y(number)]])
    .map((point) => point.map((place) => Math.round(place * 10) / 10));
}

/// A line with its words; undefined where there are no two values.
export function lineChart(versions, setting) {
  const values = lineValues(versions, setting);
  if (values.length < 2) return undefined;
  const numbers = values.map(({ number }) => number);
  const points = linePoints(numbers);
  const texts = [...values].sort((a, b) => a.number - b.number).map(({ text }) => text);
  const words = `${values.length} values since ${timeText(values[0].modified)}, from ${texts[0]} to ${texts.at(-1)}`;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": visible(words) },
    svg("polyline", { points: points.map((point) => point.join(",")).join(" ") }),
    svg("circle", { cx: points.at(-1)[0], cy: points.at(-1)[1], r: 2.5 }));
  return element("figure", { id: "chart" }, drawing, element("figcaption", {}, visible(words)));
}

function svg(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
