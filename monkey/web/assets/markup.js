// What views are written in: htm, and texts in it that show all of themselves.

import { html as make } from "./htm.js";
import { visible } from "./format.js";

/** Attributes that are read by people. Others stay as they are: forms need them whole, and so do components. */
const READ = /[ \n](?:title|aria-label|placeholder)=$/;

/** Return the elements of a template. Texts may be anybody's. */
export function html(parts, ...values) {
  return make(parts, ...values.map((value, at) => (typeof value === "string" && (!parts[at].endsWith("=") || READ.test(parts[at])) ? visible(value) : value)));
}
