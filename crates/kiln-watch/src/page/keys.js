// Keys, mouse and search.

const KEYS = [
  ["← → or a d", "move in time"], ["↑ ↓", "the row above or below"], ["+ - or w s", "zoom in or out"], ["0", "the whole recording"],
  [". ,", "the next or last work of the row, with the gap before it"], ["Enter", "zoom to the selected work"], ["/", "search for a name"],
  ["n N", "the next or last match"], ["1 to 6", "the views"], [". , i o ↑ ↓ in memory by address", "the next or last block, zoom and move in addresses"], ["t", "light or dark"], ["Esc", "end the search, close this"], ["?", "this list"],
];

const tip = byId("tip");
let tipFor = null;

/** Shows what is at a place: at once what the page knows, and then why. */
function showTip(x, y) {
  const what = hit(x, y);
  tipFor = what;
  const words = what && tipWords(what);
  tip.hidden = !words;
  if (!words) return;
  tip.replaceChildren(...words.map((text) => make("p", {}, text)));
  placeTip(x, y);
  const why = what.gap || what.work;
  if (!why) return;
  setTimeout(async () => {
    if (tipFor !== what) return;
    try {
      const work = await askWork(why.row, why.number);
      if (tipFor !== what) return;
      if (what.work && work.line) tip.append(make("p", { class: "quiet" }, work.line));
      if (what.work && work.size) tip.append(make("p", { class: "quiet" }, sizeWords(work.size)));
      if (what.gap || !work.device_ns) tip.append(...gapLines(work));
      placeTip(x, y);
    } catch (error) { tip.append(make("p", {}, error.message)); }
  }, 60);
}

function placeTip(x, y) {
  tip.style.left = `${Math.max(0, Math.min(x + 14, view.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > view.height ? Math.max(0, y - tip.offsetHeight - 8) : y + 18}px`;
}

function tipWords(what) {
  if (what.fault) return [what.fault.message, what.fault.line || ""].filter(Boolean);
  if (what.finding) return [`${what.finding.rule}: ${what.finding.message}`, what.finding.line || what.finding.submitted || ""].filter(Boolean);
  if (what.step) return [`The device was lost (${what.step.phase}): ${timeWords(what.step.end_ns - what.step.begin_ns)}`];
  if (what.worker) return [`Process ${what.worker.process} (${what.worker.name}) had the device for ${timeWords(workerEnd(what.worker) - what.worker.begin_ns)}${what.worker.end_ns === null ? ", and has it" : ""}`];
  if (what.work) return [`${names[what.work.name]}, ${timeWords(what.work.length)}`];
  if (what.sum) {
    const { sum } = what;
    const busy = Math.min(100, Math.round((100 * sum.busy) / sum.width)), wait = Math.min(100, Math.round((100 * sum.wait) / sum.width));
    return [`${countWords(sum.starts, "work")} in ${timeWords(sum.width)}: ran ${busy} %, waited for other streams ${wait} %`, `the longest is ${names[sum.name]}, ${timeWords(sum.longest)}`, "Zoom in to see single works."];
  }
  if (what.gap) return [`${what.gap.isWait ? "Waited for another stream" : what.gap.isLate ? "Not submitted yet" : "Queued, not started"} before ${names[what.gap.name]}`];
  return null;
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.offsetX, y: event.offsetY, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!state) return;
  if (!drag) return showTip(event.offsetX, event.offsetY);
  const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
  if (drag.moved || Math.abs(dx) + Math.abs(dy) > 3) {
    tip.hidden = true;
    pan(-dx);
    scrollRows(-dy);
    drag = { x: event.offsetX, y: event.offsetY, moved: true };
  }
});
canvas.addEventListener("pointerup", (event) => {
  const wasClick = drag && !drag.moved;
  drag = null;
  if (!state || !wasClick) return;
  const what = hit(event.offsetX, event.offsetY);
  const work = what && (what.work || what.gap);
  if (work) select(work.row, work.number, Boolean(what.gap));
  else if (what && what.row !== undefined) { view.row = what.row; redraw(); }
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; tipFor = null; });
canvas.addEventListener("dblclick", zoomToSelected);
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (!state) return;
  if (event.shiftKey) return scrollRows(event.deltaY);
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return pan(event.deltaX);
  zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), event.offsetX);
}, { passive: false });

function zoomToSelected() {
  if (!view.selected) return;
  const [begin, end] = view.selected.span, from = view.selected.gap ? Math.min(view.selected.gap.begin_ns, begin) : begin;
  const margin = Math.max(16, (end - from) * 0.3);
  setSpan(from - margin, end + margin);
}

/** The row above or below. */
function moveRow(by) {
  if (!lanes.order.length) return;
  const at = lanes.order.findIndex((lane) => lane.row === view.row);
  view.row = lanes.order[Math.min(Math.max(0, at + by), lanes.order.length - 1)].row;
  showRow(view.row);
  say(laneWords(view.row));
  redraw();
}

/** The next or last work of the row: by number, since numbers ascend on a stream. */
async function moveWork(by) {
  if (view.row < 0) moveRow(1);
  const known = state.rows[view.row];
  if (!known) return;
  let number = view.selected && view.selected.row === view.row ? view.selected.number + by : firstInView(view.row);
  for (let tries = 0; tries < 64 && number > 0; tries++, number += by) {
    try {
      const work = await fetchWork(view.row, number);
      const span = work.device_ns || work.host_ns;
      if (span[0] < view.begin || span[1] > view.end) goTo({ row: view.row, begin_ns: span[0], end_ns: span[1] });
      return select(view.row, number, true);
    } catch { /* a number that the recording lacks */ }
  }
}

function firstInView(row) {
  for (let ns = view.begin; ns < view.end; ns += (view.end - view.begin) / 64) {
    const found = rowContent(row, ns);
    if (!found || !found.content.works) continue;
    const at = found.content.works.begin.findIndex((begin) => found.start + begin >= view.begin);
    if (at >= 0) return found.content.works.number[at];
  }
  return 1;
}

async function search(text) {
  view.query = text;
  const panel = byId("found");
  if (!text) {
    view.matches = null;
    panel.hidden = true;
    return redraw();
  }
  try {
    const found = await askFind(text);
    view.matches = new Set(found.map((each) => each.name));
    const rows = found.slice(0, 50).map((each) => [
      make("button", { type: "button", onclick: () => jump(each.longest.row, each.longest.number) }, each.text),
      each.count.toLocaleString("en"), timeWords(each.total_ns), timeWords(each.longest.end_ns - each.longest.begin_ns),
    ]);
    panel.hidden = false;
    panel.replaceChildren(found.length ? table([["Name"], ["Times", true], ["Altogether", true], ["Longest", true]], rows) : make("p", {}, `No work has “${text}” in its name.`));
    say(found.length ? `${countWords(found.length, "name")} found; n goes to the next` : `no work has ${text} in its name`);
  } catch (error) { showProblem(error.message); }
  redraw();
}

/** The next or last match from the selection, or from the beginning of what is seen. */
async function moveMatch(isBack) {
  if (!view.query) return byId("query").focus();
  const from = view.selected ? view.selected.span[0] : isBack ? view.end : Math.max(0, view.begin - 1);
  try {
    const place = await askNext(view.query, Math.max(0, from), isBack);
    if (!place) return say(isBack ? "no match before" : "no match behind");
    goTo(place);
    await select(place.row, place.number);
  } catch (error) { showProblem(error.message); }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  readColours();
  forgetPictures();
  redraw();
}
const switchTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

const ACTIONS = {
  ArrowLeft: () => pan(-120), a: () => pan(-120), ArrowRight: () => pan(120), d: () => pan(120),
  ArrowUp: () => moveRow(-1), ArrowDown: () => moveRow(1),
  "+": () => zoom(0.6), "=": () => zoom(0.6), w: () => zoom(0.6), "-": () => zoom(1 / 0.6), s: () => zoom(1 / 0.6), 0: fitAll,
  ".": () => moveWork(1), ",": () => moveWork(-1), Enter: zoomToSelected,
  "/": () => byId("query").focus(), n: () => moveMatch(false), N: () => moveMatch(true),
  t: switchTheme, "?": () => byId("help").showModal(),
  Escape: () => { byId("query").value = ""; search(""); },
};
["timeline", "memory", "devices", "findings", "ranks", "explain"].forEach((name, at) => { ACTIONS[at + 1] = () => setView(name); });

document.addEventListener("keydown", (event) => {
  if (!state || event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const target = event.target;
  if (target.tagName === "INPUT") {
    if (event.key === "Escape") { target.value = ""; search(""); canvas.focus(); }
    return;
  }
  if (event.key === "Enter" && target.tagName === "BUTTON") return;
  if (target.getAttribute("role") === "tab" && event.key.startsWith("Arrow")) return moveTab(event);
  const action = ACTIONS[event.key];
  if (action) { event.preventDefault(); action(); }
});

function moveTab(event) {
  const tabs = [...document.querySelectorAll("[role=tab]")], by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const next = tabs[(tabs.indexOf(event.target) + by + tabs.length) % tabs.length];
  setView(next.dataset.view);
  next.focus();
  event.preventDefault();
}

byId("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  await search(byId("query").value.trim());
  if (view.matches && view.matches.size) { canvas.focus(); await moveMatch(false); }
});
byId("theme").addEventListener("click", switchTheme);
byId("help-button").addEventListener("click", () => byId("help").showModal());
for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => setView(tab.dataset.view));
byId("keys").replaceChildren(...KEYS.map(([keys, what]) => make("tr", {}, make("td", {}, make("kbd", {}, keys)), make("td", {}, what))));
