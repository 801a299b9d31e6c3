/** Times, numbers and lines for a terminal, as people write them. */

export const day = (time) => time && new Date(time).toLocaleDateString(undefined, { dateStyle: "medium" });
export const moment = (time) => time && new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
export const plural = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;
export const percent = (share) => `${Math.round(share * 100)} %`;
export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);
export const spaced = (name) => name.replaceAll("_", " ").toLowerCase();
export const listOf = (text = "") => text.split(",").map((each) => each.trim()).filter(Boolean);

/** The end of a day, or a moment itself; undefined for what is not past, because `as_of` cannot be in the future. */
export function endOf(time) {
  const end = time?.length === 10 ? `${time}T23:59:59Z` : time;
  return Date.parse(end) < Date.now() ? end : undefined;
}

export const curl = (path, body) => `curl -sS ${location.origin}${path} -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '${
  JSON.stringify(body).replaceAll("'", "'\\''")}'`;
