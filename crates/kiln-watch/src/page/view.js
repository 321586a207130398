// What is looked at: a part of the time, rows, a selection.

const view = {
  begin: 0, end: 1, scroll: 0, width: 1, height: 1,
  row: -1, selected: null, matches: null, query: "", follows: true, name: "timeline",
};
const LABELS = 170, AXIS = 24, ROW = 26, HEAD = 20;

/** What a stream is called, with the number by which sentences name it. */
const streamWords = (row) => (!row.name || row.name === `stream ${row.stream}` ? `stream ${row.stream}` : `${row.name} (stream ${row.stream})`);

/** The clocks of the devices of a recording: times of different ones cannot be compared. */
const clocksOf = (rec) => [...new Set(state.devices.filter((device) => device.rec === rec).map((device) => device.clock))];

/** What the waits of a thread are called. */
const threadWords = (row) => row.name || `thread ${row.thread}${clocksOf(row.rec).length > 1 ? `, clock ${row.clock}` : ""}`;

/** Rows in the order in which they are drawn: a head for each device, its worker processes and streams, then the threads. */
let lanes = [];
function arrangeLanes() {
  const rows = state.rows.map((row, number) => ({ ...row, number })), isJob = state.parts.length > 1;
  const streams = rows.filter((row) => row.kind === "stream").sort((a, b) => a.device - b.device || a.stream - b.stream);
  const threads = rows.filter((row) => row.kind === "thread").sort((a, b) => a.clock - b.clock || a.thread - b.thread);
  lanes = [];
  let y = 0;
  const put = (lane, height) => { lanes.push({ ...lane, y, height }); y += height; };
  for (const [rec] of state.parts.entries()) {
    const own = streams.filter((row) => row.rec === rec), of = isJob ? `${rankWords(rec)}, d` : "D";
    const devices = new Map(state.devices.filter((device) => device.rec === rec).map((device) => [device.device, device]));
    const clockOf = (device) => (devices.has(device) ? devices.get(device).clock : 0), clocks = clocksOf(rec);
    const all = [...new Set([...devices.keys(), ...own.map((row) => row.device)])].sort((a, b) => clockOf(a) - clockOf(b) || a - b);
    let clock = null;
    for (const device of all) {
      const known = devices.get(device);
      if (clocks.length > 1 && clockOf(device) !== clock) {
        clock = clockOf(device);
        put({ head: `${isJob ? `${rankWords(rec)}, c` : "C"}lock ${clock} (${known && known.is_virtual ? "of a simulated machine" : "of the host"}): not comparable with others` }, HEAD);
      }
      put({ head: known && known.name ? `${of}evice ${device}: ${known.name}` : `${of}evice ${device}`, place: `${rec}/${device}` }, HEAD);
      for (const worker of state.workers.filter((each) => each.place === `${rec}/${device}`)) put({ worker, label: `process ${worker.process}` }, ROW);
      for (const row of own.filter((each) => each.device === device)) put({ row: row.number, label: streamWords(row), untimed: row.untimed > 0 && row.untimed === row.count }, ROW);
    }
    const waiting = threads.filter((row) => row.rec === rec);
    if (waiting.length) {
      put({ head: isJob ? `${rankWords(rec)}, waits of the program` : "Waits of the program" }, HEAD);
      for (const row of waiting) put({ row: row.number, label: threadWords(row) }, ROW);
    }
  }
  lanes.total = y;
  lanes.order = lanes.filter((lane) => lane.row !== undefined);
}

const nsPerPixel = () => (view.end - view.begin) / Math.max(1, view.width - LABELS);
const xOf = (ns) => LABELS + (ns - view.begin) / nsPerPixel();
const nsOf = (x) => view.begin + (x - LABELS) * nsPerPixel();
const recordingLength = () => Math.max(1, state.end_ns - state.begin_ns);

function fitAll() {
  const margin = recordingLength() * 0.01;
  setSpan(state.begin_ns - margin, state.end_ns + margin);
  view.follows = true;
}

/** Looks at a part of the time; not far beyond the recording, and not below 16 ns. */
function setSpan(begin, end) {
  const length = Math.min(Math.max(16, end - begin), recordingLength() * 1.5 + 32);
  const middle = (begin + end) / 2;
  const low = state.begin_ns - length * 0.6, high = state.end_ns + length * 0.6;
  view.begin = Math.min(Math.max(middle - length / 2, low), high - length);
  view.end = view.begin + length;
  view.follows = false;
  redraw();
}

function pan(pixels) {
  const ns = pixels * nsPerPixel();
  setSpan(view.begin + ns, view.end + ns);
}

function zoom(factor, x) {
  const at = nsOf(x === undefined ? (LABELS + view.width) / 2 : Math.max(x, LABELS));
  setSpan(at - (at - view.begin) * factor, at + (view.end - at) * factor);
}

/** Scrolls so that a row is seen. */
function showRow(row) {
  const lane = lanes.find((each) => each.row === row);
  if (!lane) return;
  const room = view.height - AXIS;
  if (lane.y < view.scroll) view.scroll = lane.y;
  if (lane.y + lane.height > view.scroll + room) view.scroll = lane.y + lane.height - room;
}

function scrollRows(pixels) {
  view.scroll = Math.min(Math.max(0, view.scroll + pixels), Math.max(0, lanes.total - (view.height - AXIS)));
  redraw();
}

/** Brings a work into view, wide enough to be seen. */
function goTo(place) {
  const length = Math.max(place.end_ns - place.begin_ns, 1);
  if (place.begin_ns < view.begin || place.end_ns > view.end || length < 4 * nsPerPixel()) {
    const wide = Math.max(length * 20, 200);
    setSpan(place.begin_ns - wide / 2, place.begin_ns + wide / 2);
  }
  view.row = place.row;
  showRow(place.row);
  redraw();
}

let isDirty = false;
function redraw() {
  if (isDirty) return;
  isDirty = true;
  requestAnimationFrame(() => { isDirty = false; if (state) draw(); });
}
