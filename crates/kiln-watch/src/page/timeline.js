// The timeline: tiles from the server, drawn once each as a picture, and moved as pictures.

const TILE = 512, CHUNK = 64, MAX_TILES = 500, MAX_ASKED = 6;
const tiles = new Map();
let asked = 0, missing = 0, drawings = 0;
const canvas = byId("timeline");
const ink = canvas.getContext("2d");

/** Rows of a recording that come with one tile. */
const chunkOf = (row) => ({ rec: state.rows[row].rec, chunk: Math.floor(state.rows[row].own / CHUNK) });
const tileKey = (level, index, rec, chunk) => `${level}/${index}/${rec}/${chunk}`;
const tileBegin = (tile) => tile.index * TILE * 2 ** tile.level + offsetOf(tile.rec);

function forgetTiles() { tiles.clear(); }
function forgetPictures() { for (const tile of tiles.values()) tile.picture = null; }

/** A bucket is not wider than a pixel. */
const wantedLevel = () => Math.max(0, Math.min(50, Math.floor(Math.log2(nsPerPixel()))));

async function askTile(level, index, rec, chunk) {
  const key = tileKey(level, index, rec, chunk);
  const known = tiles.get(key);
  if (known && known.isAsked) return;
  const tile = known || { level, index, rec, chunk, rows: null, picture: null };
  tile.isAsked = true;
  tiles.set(key, tile);
  asked += 1;
  const version = state.version;
  try {
    const rows = await askRows(rec, level, index, chunk * CHUNK, CHUNK);
    tile.rows = new Map(rows.map((row) => [row.row, row]));
    tile.version = version;
    tile.picture = null;
  } catch (error) {
    tiles.delete(key);
    showProblem(`${error.message}; the page tries again`);
  }
  tile.isAsked = false;
  asked -= 1;
  redraw();
}

/** The tiles that are seen, and asks for those that are missing or old; one more on each side is asked for last. */
function seenTiles(level) {
  const width = TILE * 2 ** level;
  const chunks = new Map(seenLanes().filter((lane) => lane.row !== undefined).map((lane) => chunkOf(lane.row)).map((each) => [`${each.rec}/${each.chunk}`, each]));
  const seen = [];
  missing = 0;
  const wish = (index, { rec, chunk }, isSeen) => {
    const key = tileKey(level, index, rec, chunk);
    const tile = tiles.get(key);
    if (isSeen) {
      seen.push({ level, index, rec, chunk, tile });
      if (!tile || !tile.rows) missing += 1;
      else { tiles.delete(key); tiles.set(key, tile); }
    }
    const isOld = !tile || (tile.version !== state.version && !tile.isAsked);
    if (isOld && asked < MAX_ASKED) askTile(level, index, rec, chunk);
  };
  const spans = [...chunks.values()].map((place) => {
    const offset = offsetOf(place.rec), first = Math.max(0, Math.floor((view.begin - offset) / width));
    return [place, first, Math.max(first, Math.floor((view.end - offset) / width)), offset];
  });
  for (const [place, first, last] of spans) for (let index = first; index <= last; index++) wish(index, place, true);
  for (const [place, first, last, offset] of spans) for (const index of [last + 1, first - 1]) if (index >= 0 && index * width + offset < state.end_ns) wish(index, place, false);
  for (const key of tiles.keys()) {
    if (tiles.size <= MAX_TILES) break;
    if (!tiles.get(key).isAsked) tiles.delete(key);
  }
  return seen;
}

const seenLanes = () => lanes.filter((lane) => lane.y + lane.height > view.scroll && lane.y < view.scroll + view.height - AXIS);
const isDim = (name) => view.matches && !view.matches.has(name);

/** The picture of a tile: its rows below each other, in the order of their numbers. */
function tilePicture(tile, scale) {
  const key = `${scale}/${view.query}`;
  if (tile.picture && tile.picture.key === key) return tile.picture;
  const width = Math.max(1, Math.ceil((TILE * 2 ** tile.level) / scale));
  const picture = new OffscreenCanvas(width, Math.max(1, Math.min(CHUNK, state.parts[tile.rec].rows.length - tile.chunk * CHUNK)) * ROW);
  const pen = picture.getContext("2d");
  for (const row of tile.rows.values()) {
    const top = (row.row - tile.chunk * CHUNK) * ROW;
    if (row.works) drawWorks(pen, row.works, top, scale, width);
    else drawSums(pen, row.sums, tile, top, scale);
  }
  tile.picture = picture;
  picture.key = key;
  drawings += 1;
  return picture;
}

function drawWorks(pen, works, top, scale, width) {
  let drawnTo = -1;
  for (let at = 0; at < works.begin.length; at++) {
    const begin = works.begin[at] / scale, end = (works.begin[at] + works.length[at]) / scale;
    if (works.gap[at] > 0 && works.gap[at] / scale >= 1) {
      const ready = begin - works.ready[at] / scale;
      line(pen, begin - works.gap[at] / scale, ready, top + ROW / 2, 1, colours.late);
      if (works.flags[at] & 16) box(pen, ready, begin, top + 9, ROW - 18, colours.wait, 1, width);
      else line(pen, ready, begin, top + ROW / 2, 2, colours.queued);
    }
    // Of works in one pixel only the first is drawn.
    if (end - begin < 0.5 && begin < drawnTo) continue;
    drawnTo = Math.floor(begin) + 1;
    const colour = nameColour(works.name[at]);
    const isTimed = works.flags[at] & 32;
    box(pen, begin, end, top + (isTimed ? 3 : 8), isTimed ? ROW - 6 : ROW - 16, colour, isDim(works.name[at]) ? 0.2 : 1, width);
  }
}

function drawSums(pen, sums, tile, top, scale) {
  const width = 2 ** sums.level, begin = tile.index * TILE * 2 ** tile.level;
  const first = Math.floor(begin / width);
  for (let at = 0; at < sums.at.length; at++) {
    const from = ((first + sums.at[at]) * width - begin) / scale, to = from + width / scale;
    const x = Math.floor(from), wide = Math.max(1, Math.ceil(to) - x);
    const room = ROW - 6;
    const busy = sums.starts[at] || sums.busy[at] ? Math.max(2, Math.min(1, sums.busy[at] / width) * room) : 0;
    const wait = sums.wait[at] ? Math.max(2, Math.min(1, sums.wait[at] / width) * room) : 0;
    if (wait) { pen.fillStyle = colours.wait; pen.fillRect(x, top + 3, wide, Math.min(wait, room)); }
    if (busy) {
      pen.globalAlpha = isDim(sums.name[at]) ? 0.2 : 1;
      pen.fillStyle = nameColour(sums.name[at]);
      pen.fillRect(x, top + 3 + room - busy, wide, busy);
      pen.globalAlpha = 1;
    }
  }
}

function box(pen, begin, end, top, height, colour, alpha, width) {
  const x = Math.max(-2, begin), wide = Math.max(1, Math.min(end, width + 2) - x);
  pen.globalAlpha = alpha;
  pen.fillStyle = colour;
  // A hairline of the background keeps neighbours apart.
  pen.fillRect(x, top, wide > 3 ? wide - 0.75 : wide, height);
  pen.globalAlpha = 1;
}

function line(pen, begin, end, y, height, colour) {
  if (end <= begin) return;
  pen.fillStyle = colour;
  pen.fillRect(begin, y - height / 2, end - begin, height);
}

function draw() {
  if (view.name === "memory") drawMemory();
  if (view.name === "ranks") drawCalls();
  const ratio = devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  if (width < 1) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  [view.width, view.height] = [width, height];
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.fillStyle = colours.back;
  ink.fillRect(0, 0, width, height);
  if (!state.rows.length && !state.devices.length) return sayEmpty();
  const level = wantedLevel(), seen = seenTiles(level);
  ink.save();
  ink.beginPath();
  ink.rect(LABELS, AXIS, width - LABELS, height - AXIS);
  ink.clip();
  for (const place of seen) drawTile(place);
  drawNames(seen);
  drawWorkers();
  drawMarks();
  drawSelection();
  ink.restore();
  drawLabels();
  drawAxis();
  if (!missing && !performance.getEntriesByName("tiles-painted").length) performance.mark("tiles-painted");
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function sayEmpty() {
  ink.fillStyle = colours.quiet;
  ink.font = "14px system-ui, 'Open Sans', sans-serif";
  ink.fillText(state.is_at_end ? "Nothing was recorded yet." : "Reading…", 24, 40);
}

/** Draws a tile, or what is known of it from a wider one. */
function drawTile({ level, index, rec, chunk, tile }) {
  const scale = nsPerPixel();
  if (tile && tile.rows) return placePicture(tile, tilePicture(tile, scale), scale, null);
  for (let up = 1; up <= 8; up++) {
    const wider = tiles.get(tileKey(level + up, Math.floor(index / 2 ** up), rec, chunk));
    if (wider && wider.rows) {
      const width = TILE * 2 ** level;
      return placePicture(wider, wider.picture || tilePicture(wider, scale * 2 ** up), scale, [xOf(index * width + offsetOf(rec)), xOf((index + 1) * width + offsetOf(rec))]);
    }
  }
}

/** Copies the rows of a picture to where they are seen; only between two places if they are given. */
function placePicture(tile, picture, scale, between) {
  const begin = xOf(tileBegin(tile)), wide = (TILE * 2 ** tile.level) / scale;
  const from = between ? Math.max(begin, between[0]) : begin, to = between ? Math.min(begin + wide, between[1]) : begin + wide;
  const sx = ((from - begin) / wide) * picture.width, sw = ((to - from) / wide) * picture.width;
  if (sw <= 0) return;
  for (const lane of seenLanes()) {
    if (lane.row === undefined) continue;
    const { rec, own } = state.rows[lane.row], row = own - tile.chunk * CHUNK;
    if (rec !== tile.rec || row < 0 || (row + 1) * ROW > picture.height || !tile.rows.has(own)) continue;
    ink.drawImage(picture, sx, row * ROW, sw, ROW, from, AXIS + lane.y - view.scroll, to - from, ROW);
  }
}

/** Names on works that are wide enough. */
function drawNames(seen) {
  const scale = nsPerPixel(), done = new Set();
  ink.font = "12px system-ui, 'Open Sans', sans-serif";
  ink.textBaseline = "middle";
  ink.fillStyle = colours.front;
  for (const { tile } of seen) {
    if (!tile || !tile.rows) continue;
    const start = tileBegin(tile);
    for (const lane of seenLanes()) {
      const place = lane.row === undefined ? null : state.rows[lane.row];
      const row = place && place.rec === tile.rec ? tile.rows.get(place.own) : null;
      if (!row || !row.works) continue;
      const works = row.works, y = AXIS + lane.y - view.scroll + ROW / 2;
      for (let at = 0; at < works.begin.length; at++) {
        if (works.length[at] / scale < 40 || done.has(`${lane.row}/${works.number[at]}`)) continue;
        done.add(`${lane.row}/${works.number[at]}`);
        const left = Math.max(LABELS, xOf(start + works.begin[at])), right = Math.min(view.width, xOf(start + works.begin[at] + works.length[at]));
        const text = names[works.name[at]] || "";
        const fits = Math.floor((right - left - 8) / 6.6);
        if (fits >= 3) ink.fillText(cut(text, fits), left + 4, y);
      }
    }
  }
}

/** Worker processes, from when to when they had the device. */
function drawWorkers() {
  ink.font = "12px system-ui, 'Open Sans', sans-serif";
  ink.textBaseline = "middle";
  for (const { worker, y: top } of seenLanes().filter((each) => each.worker)) {
    const y = AXIS + top - view.scroll, left = Math.max(LABELS, xOf(worker.begin_ns)), right = Math.min(view.width, xOf(workerEnd(worker)));
    if (right < left) continue;
    ink.fillStyle = colours.panel;
    ink.fillRect(left, y + 4, Math.max(2, right - left), ROW - 8);
    ink.strokeStyle = colours.takeover;
    ink.strokeRect(left + 0.5, y + 4.5, Math.max(1, right - left - 1), ROW - 9);
    ink.fillStyle = colours.front;
    const fits = Math.floor((right - left - 8) / 6.6);
    if (fits >= 3) ink.fillText(cut(worker.name, fits), left + 4, y + ROW / 2);
  }
}

/** One that has its device still has it as far as the recording was read. */
const workerEnd = (worker) => (worker.end_ns === null ? Math.max(worker.begin_ns, state.end_ns) : worker.end_ns);

/** Faults, findings and takeovers, on the heads of their devices. */
function drawMarks() {
  for (const lane of seenLanes().filter((each) => each.head && each.place !== undefined)) {
    const y = AXIS + lane.y - view.scroll;
    for (const step of state.takeovers.filter((each) => each.place === lane.place)) {
      ink.fillStyle = colours.takeover;
      ink.fillRect(xOf(step.begin_ns), y + 5, Math.max(2, xOf(step.end_ns) - xOf(step.begin_ns)), HEAD - 10);
    }
    for (const fault of state.faults.filter((each) => each.place === lane.place)) {
      const x = xOf(fault.time_ns);
      ink.fillStyle = colours.fault;
      ink.beginPath();
      ink.moveTo(x, y + HEAD - 2);
      ink.lineTo(x - 6, y + 4);
      ink.lineTo(x + 6, y + 4);
      ink.fill();
    }
    for (const finding of state.findings.filter((each) => each.place === lane.place)) {
      const x = xOf(finding.time_ns), middle = y + HEAD / 2;
      ink.fillStyle = colours.finding;
      ink.beginPath();
      ink.moveTo(x, middle - 6);
      ink.lineTo(x + 5, middle);
      ink.lineTo(x, middle + 6);
      ink.lineTo(x - 5, middle);
      ink.fill();
    }
  }
}

/** A frame around the selected work, and a line from each work that it waited for. */
function drawSelection() {
  const chosen = view.selected, lane = chosen && lanes.find((each) => each.row === chosen.row);
  if (!lane) return;
  const y = AXIS + lane.y - view.scroll, [begin, end] = chosen.span;
  ink.strokeStyle = colours.front;
  ink.lineWidth = 2;
  ink.strokeRect(xOf(begin), y + 2, Math.max(3, xOf(end) - xOf(begin)), ROW - 4);
  if (!chosen.gap) return;
  ink.strokeStyle = colours.wait;
  for (const wait of chosen.gap.waits) {
    const from = lanes.find((each) => each.row === wait.row);
    if (!from || wait.end_ns === null) continue;
    const fromY = AXIS + from.y - view.scroll + ROW / 2;
    ink.beginPath();
    ink.moveTo(xOf(wait.end_ns), fromY);
    ink.bezierCurveTo(xOf(wait.end_ns) + 30, fromY, xOf(begin) - 30, y + ROW / 2, xOf(begin), y + ROW / 2);
    ink.stroke();
  }
}

function drawLabels() {
  ink.font = "12px system-ui, 'Open Sans', sans-serif";
  ink.textBaseline = "middle";
  ink.fillStyle = colours.back;
  ink.fillRect(0, AXIS, LABELS, view.height - AXIS);
  ink.save();
  ink.beginPath();
  ink.rect(0, AXIS, view.width, view.height - AXIS);
  ink.clip();
  for (const lane of seenLanes()) {
    const y = AXIS + lane.y - view.scroll;
    if (lane.head) {
      ink.fillStyle = colours.quiet;
      ink.fillText(cut(lane.head, 26), 8, y + HEAD / 2);
    } else {
      if (lane.row === view.row) { ink.fillStyle = colours.panel; ink.fillRect(0, y, LABELS - 1, ROW); }
      ink.fillStyle = colours.front;
      const how = lane.untimed ? " (submitted)" : "";
      ink.fillText(cut(lane.label, 24 - how.length) + how, 20, y + ROW / 2);
    }
    ink.fillStyle = colours.line;
    ink.fillRect(0, y + lane.height - 0.5, view.width, 0.5);
  }
  ink.restore();
  ink.fillRect(LABELS - 1, AXIS, 1, view.height - AXIS);
}

/** Times along the top, in steps of 1, 2 or 5. */
function drawAxis() {
  const wanted = nsPerPixel() * 110, power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= wanted);
  ink.fillStyle = colours.panel;
  ink.fillRect(0, 0, view.width, AXIS);
  ink.fillStyle = colours.quiet;
  ink.font = "11px system-ui, 'Open Sans', sans-serif";
  ink.fillText(`${timeWords(view.end - view.begin)} in view`, 8, AXIS / 2);
  for (let at = Math.ceil(view.begin / step) * step + 0; at < view.end; at += step) {
    const x = xOf(at);
    if (x < LABELS) continue;
    ink.fillRect(x, AXIS - 5, 1, 5);
    ink.fillText(axisWords(at, step), x + 3, AXIS / 2);
  }
}

function axisWords(ns, step) {
  const [unit, word] = step < 1e3 ? [1, "ns"] : step < 1e6 ? [1e3, "us"] : step < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return `${(ns / unit).toLocaleString("en", { maximumFractionDigits: 0 })} ${word}`;
}

/** What is at a place of the canvas: a work, the gap before one, a sum, a fault, a finding, a worker process, or nothing. */
function hit(x, y) {
  const lane = lanes.find((each) => y >= AXIS && y - AXIS + view.scroll >= each.y && y - AXIS + view.scroll < each.y + each.height);
  if (!lane || x < LABELS) return null;
  const ns = nsOf(x);
  if (lane.head) {
    const fault = state.faults.find((each) => each.place === lane.place && Math.abs(xOf(each.time_ns) - x) < 7);
    const finding = state.findings.find((each) => each.place === lane.place && Math.abs(xOf(each.time_ns) - x) < 6);
    const step = state.takeovers.find((each) => each.place === lane.place && each.begin_ns <= ns && ns <= each.end_ns);
    return fault ? { fault } : finding ? { finding } : step ? { step } : null;
  }
  if (lane.worker) return lane.worker.begin_ns <= ns && ns <= workerEnd(lane.worker) ? { worker: lane.worker } : null;
  const found = rowContent(lane.row, ns);
  if (!found) return { row: lane.row };
  const { content, start, offset } = found;
  return content.works ? hitWork(lane.row, content.works, ns - start) : hitSum(lane.row, content.sums, ns - offset, start - offset);
}

/** What the finest tile that is known has of a row at a time. */
function rowContent(row, ns) {
  const wanted = wantedLevel(), { rec, chunk } = chunkOf(row);
  for (let level = wanted; level < wanted + 3; level++) {
    const index = Math.floor(Math.max(0, ns - offsetOf(rec)) / (TILE * 2 ** level));
    const tile = tiles.get(tileKey(level, index, rec, chunk));
    if (tile && tile.rows) {
      const content = tile.rows.get(state.rows[row].own);
      return content && { content, start: tileBegin(tile), offset: offsetOf(rec) };
    }
  }
  return null;
}

function hitWork(row, works, at) {
  const slack = nsPerPixel() * 2;
  let near = null;
  for (let each = 0; each < works.begin.length; each++) {
    const begin = works.begin[each], end = begin + works.length[each];
    const work = { row, number: works.number[each], name: works.name[each], length: works.length[each] };
    if (at >= begin && at < end) return { work };
    if (at < begin && at >= begin - works.gap[each] && works.gap[each] > slack) {
      const isWait = (works.flags[each] & 16) && at >= begin - works.ready[each];
      return { gap: { ...work, ns: works.gap[each], isWait, isLate: at < begin - works.ready[each] } };
    }
    if (Math.abs(at - begin) < slack) near = near || { work };
  }
  return near || { row };
}

function hitSum(row, sums, ns, start) {
  const width = 2 ** sums.level, at = Math.floor(ns / width) - Math.floor(start / width);
  const place = sums.at.indexOf(at);
  if (place < 0) return { row };
  return { sum: { row, width, busy: sums.busy[place], wait: sums.wait[place], starts: sums.starts[place], name: sums.name[place], longest: sums.longest[place] } };
}
