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
  /** Moves a node away from another; `force` is in distances, negative to move it nearer. */
  const push = (one, other, force) => {
    const x = one.x - other.x, y = one.y - other.y, share = force(Math.max(1, Math.hypot(x, y)));
    one.dx += x * share;
    one.dy += y * share;
  };
  const within = (value) => Math.min(size - MARGIN, Math.max(MARGIN, value));
  const move = (heat) => {
    for (const one of points) {
      one.dx = (middle - one.x) / 50;
      one.dy = (middle - one.y) / 50;
      for (const other of points) push(one, other, (distance) => (ideal / distance) ** 2);
    }
    for (const [one, other] of pairs) for (const ends of [[one, other], [other, one]]) push(...ends, (distance) => -distance / ideal);
    for (const one of points) {
      const length = Math.hypot(one.dx, one.dy) || 1, part = one.id === centre ? 0 : Math.min(length, heat) / length;
      one.x = within(one.x + one.dx * part);
      one.y = within(one.y + one.dy * part);
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
