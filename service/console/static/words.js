/** Times and numbers as people write them. */

const DAY = /** @type {Intl.DateTimeFormatOptions} */ ({ year: "numeric", month: "short", day: "numeric" });
const UNITS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60]]);

export const day = (time) => time && new Date(time).toLocaleDateString(undefined, DAY);
export const moment = (time) => time && new Date(time).toLocaleString(undefined, { ...DAY, hour: "2-digit", minute: "2-digit" });

/** Such as "3 days ago". */
export function ago(time) {
  if (!time) return "never";
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(seconds) >= each) || [];
  return unit ? new Intl.RelativeTimeFormat().format(Math.round(seconds / length), unit) : "just now";
}

/** The end of a day, or a moment itself; undefined for what is not past, because `as_of` cannot be in the future. */
export function endOf(time) {
  const end = time?.length === 10 ? `${time}T23:59:59Z` : time;
  return Date.parse(end) < Date.now() ? end : undefined;
}

export const count = (number) => number.toLocaleString();
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const memories = (number) => plural(number, "memory", "memories");
export const percent = (share) => `${Math.round(share * 100)} %`;
export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);
export const spaced = (name) => name.replaceAll("_", " ").toLowerCase();
