// Begins, and follows the recording while it grows.

const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
setView("timeline");
new ResizeObserver(redraw).observe(byId("stage"));

/** What the lanes are made of. */
const laneShape = () => `${state.rows.length}/${state.devices.length}/${job.recordings.map((each) => `${each.ranks}@${each.offset_ns}`)}`;

let failures = 0;
async function follow() {
  try {
    const isFirst = !state, shape = state ? laneShape() : "";
    const { changed, isOther } = await readState();
    failures = 0;
    showProblem(state.problem);
    if (isOther) { forgetTiles(); view.selected = null; }
    if (isFirst || isOther || shape !== laneShape()) { arrangeLanes(); forgetPictures(); }
    if (isFirst || isOther || (changed && view.follows)) fitAll();
    if (isFirst || changed) { showView(); redraw(); }
  } catch (error) {
    failures += 1;
    if (failures > 1) showProblem("The server of this page does not answer: `kiln watch` was ended, or is busy.");
  }
  setTimeout(follow, state && state.is_at_end ? 500 : 150);
}
follow();

// For tests: whether everything that is seen has been drawn, and what is looked at.
window.kilnWatch = {
  isSettled: () => Boolean(state) && state.is_at_end && !missing && !asked && !isDirty && !isAskingCurves && !isAskingBlocks && !isAskingCalls,
  view, job: () => job, blocks: () => blockViews, pan, zoom, setSpan, xOf, lanes: () => lanes, state: () => state, drawings: () => drawings,
  tiles: () => tiles.size, missing: () => missing, AXIS, ROW, LABELS, byteWords, timeWords,
};
