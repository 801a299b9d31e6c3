/**
 * Fruchterman and Reingold's force-directed layout (1991): nodes repel each other, relations pull, the centre is fixed.
 *
 * It runs in slices between frames: the page's policy has no trusted type for the script of a worker.
 */

const STEPS = 250, SLICE_MS = 8, MARGIN = 120, GOLDEN_ANGLE = 2.4;

/** Calls `onDone` with `{id: [x, y]}`, within a square of `size`; returns a function that stops it. */
export function layOut({ ids, edges, centre, size }, onDone) {
  const ideal = (0.7 * size) / Math.sqrt(ids.length), middle = size / 2;
  const points = ids.map((id, at) => { // a spiral: no two nodes in one place
    const radius = id === centre ? 0 : ideal * Math.sqrt(at + 1) / 2, angle = at * GOLDEN_ANGLE;
    return { id, x: middle + radius * Math.cos(angle), y: middle + radius * Math.sin(angle), dx: 0, dy: 0 };
  });
  const pairs = edges.map((ends) => ends.map((id) => points.find((each) => each.id === id)));
  /** Moves two nodes apart; `force` is in distances, negative to move them together. */
  const push = (one, other, force) => {
    const x = one.x - other.x, y = one.y - other.y, share = force(Math.max(1, Math.hypot(x, y)));
    one.dx += x * share; one.dy += y * share;
    other.dx -= x * share; other.dy -= y * share;
  };
  const within = (value) => Math.min(size - MARGIN, Math.max(MARGIN, value));
  const move = (heat) => {
    for (const point of points) { point.dx = (middle - point.x) / 50; point.dy = (middle - point.y) / 50; }
    points.forEach((one, at) => points.slice(at + 1).forEach((other) => push(one, other, (distance) => (ideal / distance) ** 2)));
    for (const [one, other] of pairs) push(one, other, (distance) => -distance / ideal);
    for (const point of points.filter((each) => each.id !== centre)) {
      const length = Math.hypot(point.dx, point.dy) || 1, part = Math.min(length, heat) / length;
      point.x = within(point.x + point.dx * part);
      point.y = within(point.y + point.dy * part);
    }
  };
  let step = 0, frame = 0;
  const slice = () => {
    for (const end = performance.now() + SLICE_MS; step < STEPS && performance.now() < end; step += 1) move(ideal * 0.4 * (1 - step / STEPS));
    if (step < STEPS) frame = requestAnimationFrame(slice);
    else onDone(Object.fromEntries(points.map(({ id, x, y }) => [id, [x, y]])));
  };
  slice();
  return () => cancelAnimationFrame(frame);
}
