/**
 * Fruchterman and Reingold's force-directed layout (1991): nodes repel each other, relations pull, the centre is fixed.
 *
 * It runs in slices between frames: the page's policy has no trusted type for the script of a worker.
 */

const STEPS = 250, SLICE_MS = 8, MARGIN = 70, GOLDEN_ANGLE = 2.4;

/** Calls `onDone` with `{id: [x, y]}`, within a square of `size`; returns a function that stops it. */
export function layOut({ ids, edges, centre, size }, onDone) {
  const ideal = (0.7 * size) / Math.sqrt(ids.length), middle = size / 2;
  const points = new Map(ids.map((id, at) => { // a spiral: no two nodes in one place
    const radius = id === centre ? 0 : ideal * Math.sqrt(at + 1) * 0.5, angle = at * GOLDEN_ANGLE;
    return [id, { id, x: middle + radius * Math.cos(angle), y: middle + radius * Math.sin(angle), dx: 0, dy: 0 }];
  }));
  const all = [...points.values()];
  /** Moves `one` by a force away from `other`. */
  const push = (one, other, force) => {
    const x = one.x - other.x, y = one.y - other.y, distance = Math.max(1, Math.hypot(x, y));
    one.dx += (x / distance) * force(distance);
    one.dy += (y / distance) * force(distance);
  };
  const pull = (distance) => -(distance ** 2) / ideal;
  const within = (value) => Math.min(size - MARGIN, Math.max(MARGIN, value));
  const move = (heat) => {
    for (const one of all) {
      one.dx = (middle - one.x) * 0.02;
      one.dy = (middle - one.y) * 0.02;
      for (const other of all) if (other !== one) push(one, other, (distance) => ideal ** 2 / distance);
    }
    for (const [one, other] of edges) {
      push(points.get(one), points.get(other), pull);
      push(points.get(other), points.get(one), pull);
    }
    for (const point of all.filter((each) => each.id !== centre)) {
      const length = Math.hypot(point.dx, point.dy) || 1, way = Math.min(length, heat) / length;
      point.x = within(point.x + point.dx * way);
      point.y = within(point.y + point.dy * way);
    }
  };
  let step = 0, frame = 0;
  const slice = () => {
    for (const end = performance.now() + SLICE_MS; step < STEPS && performance.now() < end; step += 1) move(ideal * 0.4 * (1 - step / STEPS));
    if (step < STEPS) frame = requestAnimationFrame(slice);
    else onDone(Object.fromEntries(all.map(({ id, x, y }) => [id, [x, y]])));
  };
  slice();
  return () => cancelAnimationFrame(frame);
}
