// The views in words: details of a work, devices, faults, the explanation.

function table(heads, rows) {
  const head = make("tr", {}, ...heads.map(([text, isNumber]) => make("th", isNumber ? { class: "number" } : {}, text)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, at) => make("td", heads[at][1] ? { class: "number" } : {}, cell))));
  return make("table", {}, head, ...body);
}

const say = (text) => { byId("said").textContent = text; };
const laneWords = (row) => {
  const known = state.rows[row];
  if (!known) return "";
  const of = state.parts.length > 1 ? `${rankWords(known.rec)}, ` : "";
  return of + (known.kind === "stream" ? `device ${known.device}, ${streamWords(known)}` : threadWords(known));
};

/** Selects a work: shows what is known of it, and says it. */
async function select(row, number, isGap) {
  try {
    const work = await askWork(row, number);
    const span = work.device_ns || work.host_ns;
    view.selected = { row, number, span, gap: work.gap };
    view.row = row;
    showDetails(work, isGap);
    say([workWords(work), ...(work.gap ? work.gap.sentences : [])].join(". "));
  } catch (error) { showProblem(error.message); }
  redraw();
}

function workWords(work) {
  const span = work.device_ns || work.host_ns;
  return `${work.name}, ${work.kind}, ${timeWords(span[1] - span[0])}, ${laneWords(work.row)}${work.line ? `, ${work.line}` : ""}`;
}

/** The shape of a launch. */
const sizeWords = ([grid, block, shared]) => `grid ${grid.join("x")}, block ${block.join("x")}${shared ? `, ${byteWords(shared)} of shared memory` : ""}`;

function gapLines(work) {
  const gap = work.gap;
  if (!gap) return [];
  const head = work.device_ns && gap.end_ns > gap.begin_ns ? [make("p", {}, `Before it the stream did nothing for ${timeWords(gap.end_ns - gap.begin_ns)}:`)] : [];
  return [...head, ...gap.sentences.map((text) => make("p", { class: "why" }, text))];
}

function showDetails(work) {
  const span = work.device_ns || work.host_ns;
  const facts = [
    make("p", {}, make("strong", {}, work.name), ` (${work.kind}), ${timeWords(span[1] - span[0])}${work.device_ns ? "" : " to submit; when it ran was not measured"}`),
    make("p", { class: "quiet" }, `${laneWords(work.row)}, number ${work.number}, at ${timeWords(span[0])}${work.line ? `, ${work.line}` : ""}${work.bytes ? `, ${byteWords(work.bytes)}` : ""}`),
  ];
  if (work.size) facts.push(make("p", { class: "quiet" }, sizeWords(work.size)));
  const waits = ((work.gap && work.gap.waits) || []).map((wait) => {
    const block = wait.block === null ? "" : ` ${wait.tag ? `\`${wait.tag}\` (block ${wait.block})` : `block ${wait.block}`} of`;
    const writer = `${wait.writer || "work"} (device ${wait.device}, stream ${wait.stream}, number ${wait.number}${wait.line ? `, ${wait.line}` : ""})`;
    const go = wait.row === null ? null : make("button", { type: "button", onclick: () => jump(wait.row, wait.number) }, "Go to it");
    const asked = wait.asked_at ? ` at ${wait.asked_at}` : "";
    return make("p", {}, `It ${wait.reason}${asked}:${block} ${writer} `, go);
  });
  byId("details").replaceChildren(...facts, ...gapLines(work), ...waits);
}

async function jump(row, number) {
  try {
    const work = await askWork(row, number);
    const span = work.device_ns || work.host_ns;
    setView("timeline");
    goTo({ row, begin_ns: span[0], end_ns: span[1] });
    await select(row, number);
  } catch (error) { showProblem(error.message); }
}

/** The number of a device, with its rank where there are several recordings. */
const placeWords = ({ rec, device }) => (state.parts.length > 1 ? `${rankWords(rec)}, ${device}` : `${device}`);

function showDevices() {
  const rows = state.devices.map((device) => [
    placeWords(device), device.name || "", device.state, `${device.streams}`, device.submissions.toLocaleString("en"),
    state.has_memory ? `${byteWords(device.used_bytes)} (most ${byteWords(device.peak_bytes)})` : "not recorded",
    device.heap_bytes === null ? "not recorded" : `${byteWords(device.heap_bytes)}${device.is_pool ? " (driver's pool)" : ""}`, `${device.faults}`, `${device.findings}`,
  ]);
  const heads = [["Device"], ["Name"], ["State at the end"], ["Streams", true], ["Submissions", true], ["Memory in use", true], ["Heap", true], ["Faults", true], ["Findings", true]];
  const hidden = state.hidden_events ? [make("p", {}, hiddenWords())] : [];
  byId("view-devices").replaceChildren(rows.length ? table(heads, rows) : make("p", { class: "quiet" }, "No device did anything."), ...hidden);
}

/** What is known of streams that have no row. */
const hiddenWords = () => `There are more streams than rows: ${countWords(state.hidden_events, "event")} of further streams are not drawn, and these streams are not counted.`;

/** The command that makes it happen again. What a recording does not say, the user must add. */
function repeatWords() {
  const lacking = (lacks) => lacks ? `; ${lacks}.` : "";
  if (job.repeat) return make("p", { id: "repeat" }, "To repeat it: ", make("code", {}, job.repeat), lacking(job.repeat_lacks));
  const known = state.parts[0];
  if (known.repeat) {
    return make("p", { id: "repeat" }, "To repeat it: ", make("code", {}, known.repeat), lacking(known.repeat_lacks));
  }
  const program = state.program || "PROGRAM", file = known.file || "trace.kiln";
  return make("p", { id: "repeat" }, "To repeat it: ", make("code", {}, `kiln watch ${file} -- ${program}`), ", with the arguments of the program, which the recording does not have.");
}

function showFindings() {
  const faults = state.faults.map((fault) => {
    const go = fault.work ? make("button", { type: "button", onclick: () => jump(fault.work[0], fault.work[1]) }, "Go to the work") : make("button", { type: "button", onclick: () => { setView("timeline"); goTo({ row: view.row, begin_ns: fault.time_ns, end_ns: fault.time_ns }); } }, "Go there");
    return [placeWords(fault), timeWords(fault.time_ns), make("span", { class: "fault" }, fault.message), fault.line || "", go];
  });
  const findings = state.findings.map((finding) => {
    const go = finding.work ? make("button", { type: "button", onclick: () => jump(finding.work[0], finding.work[1]) }, "Go to the work") : null;
    const what = make("span", {}, make("strong", { class: "finding" }, finding.rule), `: ${finding.message}`);
    return [placeWords(finding), timeWords(finding.time_ns), what, finding.kernel, finding.line || "", finding.submitted || "", go];
  });
  const parts = [make("h2", {}, countWords(state.fault_count, "fault"))];
  if (faults.length) parts.push(table([["Device"], ["When"], ["What"], ["Line"], [""]], faults));
  if (state.finding_count) {
    parts.push(make("h2", {}, `${countWords(state.finding_count, "finding")} of the checks`));
    parts.push(table([["Device"], ["When"], ["What"], ["Kernel"], ["Its line"], ["Submitted by"], [""]], findings));
    const more = state.finding_count - findings.length;
    if (more > 0) parts.push(make("p", { class: "quiet" }, `and ${countWords(more, "more finding")}`));
  }
  for (const found of state.post_mortems) {
    parts.push(make("h2", {}, `Post-mortem of device ${placeWords(found)}, at ${timeWords(found.time_ns)}`));
    parts.push(make("pre", { class: "post-mortem", tabindex: 0 }, found.lines.join("\n")));
  }
  if (faults.length || findings.length || state.refusals.length || state.post_mortems.length) parts.push(repeatWords());
  if (state.takeovers.length) {
    parts.push(make("h2", {}, "Devices that were lost, and the steps to bring them back"));
    parts.push(table([["Device"], ["Step"], ["When"], ["How long", true]], state.takeovers.map((step) => [placeWords(step), step.phase, timeWords(step.begin_ns), timeWords(step.end_ns - step.begin_ns)])));
  }
  if (state.refusals.length) {
    parts.push(make("h2", {}, "Allocations that were refused"));
    parts.push(table([["Device"], ["What"], [""]], state.refusals.map((each) => [placeWords(each), make("span", { class: "fault" }, each.message), make("button", { type: "button", onclick: () => { goTo({ row: view.row, begin_ns: each.time_ns, end_ns: each.time_ns }); setView("memory"); } }, "Go to the memory")])));
  }
  if (state.hidden_events) parts.push(make("p", {}, hiddenWords()));
  if (state.missing_why) parts.push(make("p", { class: "fault" }, state.missing_why));
  if (state.is_at_end && !state.has_end_mark) parts.push(make("p", {}, "The recording has no end mark: the program runs, was killed or crashed, or ended without its exit handlers (`_exit`)."));
  if (state.is_cut) parts.push(make("p", {}, "The file ends within a block, as that of a program does that runs or was killed; everything before is shown."));
  for (const [offset, what] of state.damaged) parts.push(make("p", { class: "fault" }, `The block at byte ${offset} is damaged: ${what}. It is left out.`));
  byId("view-findings").replaceChildren(...parts);
}

let explainedFor = -1;
async function showExplanation() {
  const section = byId("view-explain");
  if (explainedFor === state.version) return;
  const version = state.version;
  if (explainedFor < 0) section.replaceChildren(make("p", { class: "quiet" }, "Reading…"));
  explainedFor = version;
  try {
    const { text } = await ask("explain");
    section.replaceChildren(make("pre", { tabindex: 0 }, text));
  } catch (error) {
    explainedFor = -2;
    section.replaceChildren(make("p", { class: "fault" }, error.message));
  }
}

function showFacts() {
  const ended = state.is_at_end ? "" : `, read ${Math.floor((100 * state.read_bytes) / Math.max(1, state.file_bytes))} %`;
  const clocks = Math.max(1, ...state.parts.map((_, rec) => clocksOf(rec).length));
  const are = state.devices.every((device) => device.is_virtual) ? "each is that of one simulated machine" : "that of the host, and one for each simulated machine";
  const own = state.is_virtual ? ", times of the simulated device" : "";
  const clock = clocks > 1 ? `, times of ${clocks} clocks, which cannot be compared with each other: ${are}` : own;
  byId("title").textContent = state.program ? `kiln watch: ${state.program.split("/").pop()}` : "kiln watch";
  document.title = byId("title").textContent;
  byId("facts").textContent = `${state.file}: ${countWords(state.events, "event")}, ${timeWords(recordingLength())}${clock}${ended}${state.has_end_mark ? ", ended" : ""}`;
  byId("tab-findings").textContent = `4 Faults${state.fault_count ? ` (${state.fault_count})` : ""}${state.finding_count ? `, findings (${state.finding_count})` : ""}`;
}

/** Shows what the current view shows. */
function showView() {
  showFacts();
  if (view.name === "devices") showDevices();
  if (view.name === "findings") showFindings();
  if (view.name === "ranks") showRanks();
  if (view.name === "explain") showExplanation();
  if (view.name === "memory") drawMemory();
}

function setView(name) {
  view.name = name;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isChosen = tab.dataset.view === name;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
    byId(`view-${tab.dataset.view}`).hidden = !isChosen;
  }
  if (!state) return;
  showView();
  redraw();
}
