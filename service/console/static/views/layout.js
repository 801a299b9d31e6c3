/** Fruchterman and Reingold's force-directed layout (1991): nodes repel each other, relations pull, the centre is fixed. */

const STEPS = 240, STEPS_PER_FRAME = 8, MARGIN = 120, GOLDEN_ANGLE = 2.4;

/** Returns `{id: {x, y}}` within a square of `size`. It pauses between frames: the policy of the pages forbids a worker. */
export async function layOut({ ids, edges, centre, size }) {
  const ideal = (0.7 * size) / Math.sqrt(ids.length), middle = size / 2;
  const points = ids.map((id, at) => { // a spiral: no two nodes in one place
    const radius = id === centre ? 0 : ideal * Math.sqrt(at + 1) / 2, angle = at * GOLDEN_ANGLE;
    const related = new Set(edges.filter((ends) => ends.includes(id)).flat());
    return { id, related, x: middle + radius * Math.cos(angle), y: middle + radius * Math.sin(angle) };
  });
  const within = (value) => Math.min(size - MARGIN, Math.max(MARGIN, value));
  for (let step = 0; step < STEPS; step += 1) {
    if (step % STEPS_PER_FRAME === 0) await new Promise(requestAnimationFrame);
    const heat = ideal * 0.4 * (1 - step / STEPS);
    for (const one of points.filter(({ id }) => id !== centre)) {
      let dx = (middle - one.x) / 50, dy = (middle - one.y) / 50;
      for (const other of points) {
        const x = one.x - other.x, y = one.y - other.y, distance = Math.max(1, Math.hypot(x, y));
        const force = (ideal / distance) ** 2 - (one.related.has(other.id) ? distance / ideal : 0);
        dx += x * force;
        dy += y * force;
      }
      const share = Math.min(1, heat / (Math.hypot(dx, dy) || 1));
      one.x = within(one.x + dx * share);
      one.y = within(one.y + dy * share);
    }
  }
  return Object.fromEntries(points.map((each) => [each.id, each]));
}
