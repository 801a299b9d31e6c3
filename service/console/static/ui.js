/** Everything that a view is made of, to import from one place. */

export * from "./vendor/htm-preact.js";
export * from "./api.js";
export * from "./page.js";
export * from "./words.js";
export * from "./widgets/dialog.js";
export * from "./widgets/fields.js";
export * from "./widgets/lists.js";
export * from "./widgets/memory.js";
export * from "./widgets/actions.js";
