/** Fruchterman and Reingold's layout (1991): nodes repel each other, relations pull, the centre is fixed. */

export const SIZE = 1000;
const MIDDLE = SIZE / 2, MARGIN = 120, STEPS = 240, STEPS_PER_FRAME = 8;

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

/** Returns `{id: {x, y}}`. It pauses between frames: the policy of the pages forbids workers. */
export async function layOut({ nodes, relations }, centre) {
  const ideal = (0.7 * SIZE) / Math.sqrt(nodes.length);
  const points = nodes.map(({ id }, at) => { // on a spiral at first: no two in one place
    const radius = id === centre ? 0 : ideal * Math.sqrt(at + 1) / 2;
    return { id, x: MIDDLE + radius * Math.cos(at), y: MIDDLE + radius * Math.sin(at) };
  });
  const related = new Set(relations.flatMap(({ source_id, target_id }) => [source_id + target_id, target_id + source_id]));
  for (let step = 0; step < STEPS; step += 1) {
    if (step % STEPS_PER_FRAME === 0) await new Promise(requestAnimationFrame);
    const heat = ideal * 0.4 * (1 - step / STEPS);
    for (const one of points.filter(({ id }) => id !== centre)) {
      let dx = (MIDDLE - one.x) / 50, dy = (MIDDLE - one.y) / 50;
      for (const other of points) {
        const x = one.x - other.x, y = one.y - other.y, distance = Math.max(1, Math.hypot(x, y));
        const force = (ideal / distance) ** 2 - (related.has(one.id + other.id) ? distance / ideal : 0);
        dx += x * force;
        dy += y * force;
      }
      one.x = clamp(one.x + clamp(dx, -heat, heat), MARGIN, SIZE - MARGIN);
      one.y = clamp(one.y + clamp(dy, -heat, heat), MARGIN, SIZE - MARGIN);
    }
  }
  return Object.fromEntries(points.map((each) => [each.id, each]));
}
