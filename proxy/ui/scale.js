// Decisions of a chart: ticks, pieces of lines. Nothing is drawn here.

/** Round numbers from 0 up to at least `most`, three or four of them. */
export function ticks(most) {
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [0];
  while (found.at(-1) < most - step * 1e-9) found.push(found.length * step);
  return found;
}

/** The runs of points that follow each other; where nothing is known, or nobody looked, a line ends. */
export function runs(points, name, interval) {
  const found = [];
  let before = null;
  for (const point of points) {
    if (point[name] === null || point[name] === undefined) {
      before = null;
      continue;
    }
    if (before === null || point.at - before.at > 2.5 * interval) found.push([]);
    found.at(-1).push(point);
    before = point;
  }
  return found;
}

/** The greatest of these; 0 where none is known. */
export function most(points, names) {
  let found = 0;
  for (const point of points) for (const name of names) found = Math.max(found, point[name] ?? 0);
  return found;
}

/** The point that is nearest to a time. */
export function nearest(points, at) {
  return points.reduce((best, each) => (best && Math.abs(best.at - at) <= Math.abs(each.at - at) ? best : each), null);
}
