// What Grafana shows of the tables that a panel's queries gave: its own transformations and overrides (@grafana/data).
// stdin: {"panel": …, "frames": [{"refId", "fields": [{"name", "type", "values", "labels"}]}]}; stdout: the same, of
// what is shown.
"use strict";

const data = require("@grafana/data");
const { lastValueFrom } = require("rxjs");

// It is made for browsers, and looks whether a dashboard is one of "scenes": all are.
global.window = { __grafanaSceneContext: {} };
global.navigator ??= { languages: ["en"], language: "en" };
const transformations = new Map(Object.values(data.standardTransformers).map((one) => [one.id, one]));
data.standardTransformersRegistry.setInit(() =>
  [...transformations].map(([id, transformation]) => ({ id, transformation: async () => transformation })),
);
// Of the options that an override may set, those that change what is shown at all, not how.
const options = ["displayName", "unit", "decimals", "min", "max", "thresholds", "mappings", "links", "color"];
const custom = ["hideFrom", "width", "cellOptions", "axisLabel", "drawStyle", "lineInterpolation", "lineWidth",
  "showPoints", "spanNulls", "fillOpacity"];
const asItIs = (id, isCustom) => ({
  id, path: id, name: id, isCustom, shouldApply: () => true, process: (value) => value, override: () => null,
  editor: () => null, settings: {},
});
const registry = new data.FieldConfigOptionsRegistry(() => [
  ...options.map((id) => asItIs(id, false)),
  ...custom.map((id) => ({ ...asItIs(`custom.${id}`, true), path: id })),
]);

async function main() {
  const { panel, frames } = JSON.parse(require("fs").readFileSync(0, "utf8"));
  const replace = (text) => text;
  const shown = await lastValueFrom(
    data.transformDataFrame(panel.transformations ?? [], frames.map(data.toDataFrame), { interpolate: replace }),
  );
  const told = data.applyFieldOverrides({
    data: shown, fieldConfig: panel.fieldConfig, replaceVariables: replace, theme: data.createTheme(),
    fieldConfigRegistry: registry,
  });
  const visible = (field) => !field.config.custom?.hideFrom?.viz;
  process.stdout.write(JSON.stringify(told.map((frame) => ({
    refId: frame.refId,
    fields: frame.fields.filter(visible).map((field) => ({
      name: data.getFieldDisplayName(field, frame, told), type: field.type, values: field.values, labels: field.labels,
      config: { ...field.config },
    })),
  }))));
}

main();
