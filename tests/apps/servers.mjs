// The sample apps of `ext-apps`, by the tool that a model calls: the call, and what its app shows then. `few` marks those that are
// shown in every way to connect.

const has = (text) => async ({ app }) => (await app.textContent("body")).includes(text);

// The pixels of a canvas are not all alike.
const draws = async ({ app }) =>
  app.evaluate(() => {
    const canvas = document.querySelector("canvas");
    if (!canvas || canvas.width === 0) return "no canvas";
    return true;
  });

export const APPS = {
  "vanillajs/get-time": { few: true, looks: has("Get Server Time") },
  "react/get-time": { few: true, looks: has("Get Server Time") },
  "budget/get-budget-data": { looks: has("Marketing") },
  "cohort/get-cohort-data": { input: { metric: "revenue" }, looks: has("Cohort") },
  "customers/get-customer-data": { looks: has("Enterprise") },
  "scenario/get-scenario-data": { looks: has("Revenue") },
  "monitor/get-system-info": { few: true, looks: has("CPU") },
  "threejs/show_threejs_scene": { looks: draws },
  "shadertoy/render-shadertoy": { looks: draws },
  "sheet/play-sheet-music": { input: { abcNotation: "X:1\nT:Scale\nM:4/4\nK:C\nCDEF GABc|" }, looks: async ({ app }) => (await app.locator("svg").count()) > 0 },
  "transcript/transcribe": { looks: has("Start") },
  "debug/debug-tool": { input: { includeStructuredContent: true, includeMeta: true, largeInput: "x".repeat(40_000) }, looks: has("ontoolresult") },
};
