// What views are written in: htm, and texts in it that show all of themselves.

import { html as make } from "./htm.js";
import { visible } from "./format.js";

/** Return the elements of a template. Texts may be anybody's; values of attributes stay as they are: forms need them whole. */
export function html(parts, ...values) {
  return make(parts, ...values.map((value, at) => (typeof value === "string" && !parts[at].endsWith("=") ? visible(value) : value)));
}
