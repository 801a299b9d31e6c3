/** Times, numbers and lines for a terminal, as people write them. */

export const day = (time, style = {}) => time && new Date(time).toLocaleString(undefined, { dateStyle: "medium", ...style });
export const moment = (time) => day(time, { timeStyle: "short" });
export const plural = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;
export const percent = (share) => `${Math.round(share * 100)} %`;
export const spaced = (name) => name.replaceAll("_", " ").toLowerCase();
export const done = (event) => ({ ADD: "Added", UPDATE: "Changed", DELETE: "Deleted" })[event] || event;
export const listOf = (text = "") => text.split(",").map((each) => each.trim()).filter(Boolean);

export function curl(path, body) {
  const text = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl -sS ${location.origin}${path} -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '${text}'`;
}
