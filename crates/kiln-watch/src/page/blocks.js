// Memory by address over time: the blocks of a device's heap, and the holes between them.

let isAskingBlocks = false;
/** For each device: what was asked for and came, the part of the axis that is seen, the block that is selected. */
const blockViews = new Map();

/** Draws the blocks of all devices whose addresses are recorded, below what they have by tag. */
async function drawBlocks(section) {
  for (const [rec, part] of state.parts.entries()) {
    for (const device of part.block_devices) {
      const place = `${rec}/${device}`, figure = section.querySelector(`[data-device="${place}"]`);
      if (!figure) continue;
      if (!blockViews.has(place)) blockViews.set(place, { rec, device, place, low: 0, high: 0, picture: null, wanted: "", selected: null });
      const blocks = blockViews.get(place);
      addBlockFigure(figure, blocks);
      await askBlocks(blocks);
      if (blocks.picture) drawBlockPicture(figure, blocks);
      if (blocks.wanted !== wantedBlocks(blocks)) redraw();
    }
  }
}

const wantedBlocks = (blocks) => `${seenSpan()}/${state.version}/${blocks.low}/${blocks.high}`;

async function askBlocks(blocks) {
  const span = seenSpan(), offset = offsetOf(blocks.rec), wanted = wantedBlocks(blocks);
  if (wanted === blocks.wanted || isAskingBlocks) return;
  isAskingBlocks = true;
  try {
    const asked = { device: blocks.device, begin: Math.max(0, span[0] - offset), end: Math.max(1, span[1] - offset), low: Math.round(blocks.low), high: Math.round(blocks.high), r: blocks.rec };
    const picture = await ask("blocks", asked);
    for (const block of picture.blocks) Object.assign(block, { tag: nameHere(blocks.rec, block.tag), begin_ns: later(block.begin_ns, blocks.rec), end_ns: later(block.end_ns, blocks.rec) });
    picture.cells.tag = picture.cells.tag.map((tag) => nameHere(blocks.rec, tag));
    picture.holes = picture.holes.map(([ns, ...hole]) => [later(ns, blocks.rec), ...hole]);
    blocks.picture = { ...picture, begin_ns: asked.begin + offset, end_ns: asked.end + offset };
  } catch (error) { showProblem(error.message); }
  blocks.wanted = wanted;
  isAskingBlocks = false;
}

const BLOCK_KEYS = "Arrow keys move in time and address, plus and minus zoom the time, i and o the addresses, full stop and comma go from block to block.";

function addBlockFigure(figure, blocks) {
  if (figure.querySelector("canvas.blocks")) return;
  const canvas = make("canvas", { class: "blocks", tabindex: 0, role: "application" });
  const words = make("div", { class: "block-words" }, make("p", { class: "quiet" }, "Select a block with the mouse, or with . and , when the picture has the focus."));
  canvas.addEventListener("click", (event) => { canvas.focus(); selectBlock(figure, blocks, blockAt(blocks, canvas, event.offsetX, event.offsetY)); });
  canvas.addEventListener("keydown", (event) => blockKey(event, figure, blocks));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300)));
    if (event.shiftKey) zoomAddresses(blocks, factor, 1 - event.offsetY / canvas.getBoundingClientRect().height);
    else zoom(factor, event.offsetX);
  }, { passive: false });
  figure.append(make("h3", {}, "By address"), canvas, words, make("div", { class: "refusals" }));
}

/** The part of the axis that is seen. */
const seenAxis = (blocks) => [blocks.low, blocks.high || blocks.picture.axis_bytes];

function zoomAddresses(blocks, factor, at) {
  if (!blocks.picture) return;
  const [low, high] = seenAxis(blocks), whole = blocks.picture.axis_bytes, middle = low + (high - low) * at;
  const length = Math.min(whole, Math.max(4096, (high - low) * factor));
  blocks.low = Math.max(0, Math.min(whole - length, middle - length * at));
  blocks.high = length >= whole ? 0 : blocks.low + length;
  redraw();
}

function moveAddresses(blocks, part) {
  const [low, high] = seenAxis(blocks), whole = blocks.picture.axis_bytes;
  if (high - low >= whole) return;
  blocks.low = Math.max(0, Math.min(whole - (high - low), low + (high - low) * part));
  blocks.high = blocks.low + high - low;
  redraw();
}

function blockKey(event, figure, blocks) {
  if (event.ctrlKey || event.metaKey || event.altKey || !blocks.picture) return;
  const step = (by) => {
    const all = blocks.picture.blocks, at = all.findIndex((each) => blocks.selected && each.block === blocks.selected.block);
    if (all.length) selectBlock(figure, blocks, all[at < 0 ? 0 : Math.min(Math.max(0, at + by), all.length - 1)]);
  };
  const actions = {
    ".": () => step(1), ",": () => step(-1), i: () => zoomAddresses(blocks, 0.6, 0.5), o: () => zoomAddresses(blocks, 1 / 0.6, 0.5),
    ArrowUp: () => moveAddresses(blocks, 0.2), ArrowDown: () => moveAddresses(blocks, -0.2),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

/** The block at a place of the picture. */
function blockAt(blocks, canvas, x, y) {
  if (!blocks.picture) return null;
  const box = canvas.getBoundingClientRect(), [low, high] = seenAxis(blocks);
  const ns = view.begin + ((x - LABELS) / (box.width - LABELS)) * (view.end - view.begin), position = low + (1 - y / box.height) * (high - low);
  const isThere = (each) => position >= each.position && position < each.position + each.bytes && ns >= each.begin_ns && (each.end_ns === null || ns < each.end_ns);
  return blocks.picture.blocks.find(isThere) || null;
}

function blockWords(block) {
  const kept = block.end_ns === null ? `in use since ${timeWords(block.begin_ns)}` : `from ${timeWords(block.begin_ns)} for ${timeWords(block.end_ns - block.begin_ns)}`;
  return `Block ${block.block}, ${byteWords(block.bytes)} of ${tagWords(block.tag)} at ${block.address}, ${kept}${block.line ? `, asked for at ${block.line}` : ""}`;
}

function selectBlock(figure, blocks, block) {
  blocks.selected = block;
  const words = block ? blockWords(block) : "No single block is there: it is a hole, or many small blocks. Zoom in to see more.";
  figure.querySelector(".block-words").replaceChildren(make("p", {}, words));
  say(words);
  redraw();
}

function drawBlockPicture(figure, blocks) {
  const canvas = figure.querySelector("canvas.blocks"), ratio = devicePixelRatio || 1, box = canvas.getBoundingClientRect(), picture = blocks.picture;
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const [low, high] = [picture.low, picture.high], wide = box.width - LABELS;
  const x = (ns) => LABELS + ((ns - view.begin) / (view.end - view.begin)) * wide;
  const y = (position) => box.height * (1 - (position - low) / Math.max(1, high - low));
  pen.fillStyle = colours.panel;
  pen.fillRect(LABELS, 0, wide, box.height);
  pen.save();
  pen.beginPath();
  pen.rect(LABELS, 0, wide, box.height);
  pen.clip();
  drawCells(pen, picture, x, y);
  for (const block of picture.blocks) {
    const left = Math.max(LABELS - 2, x(block.begin_ns)), right = Math.min(box.width + 2, block.end_ns === null ? x(Math.max(state.end_ns, block.begin_ns)) : x(block.end_ns));
    const top = y(block.position + block.bytes), high = y(block.position) - top;
    pen.fillStyle = nameColour(block.tag);
    pen.fillRect(left, top, Math.max(0.5, right - left), Math.max(0.5, high > 3 ? high - 0.75 : high));
    if (blocks.selected && blocks.selected.block === block.block) {
      pen.strokeStyle = colours.front;
      pen.lineWidth = 2;
      pen.strokeRect(left, top, Math.max(2, right - left), Math.max(2, high));
    }
  }
  drawHoles(pen, picture, x, y);
  pen.restore();
  drawAddresses(pen, picture, y, box.height);
  const many = picture.added_up ? `; ${countWords(picture.added_up, "small block")} of the recording are drawn as sums` : "";
  canvas.setAttribute("aria-label", `Memory of ${deviceWords(blocks.rec, blocks.device)} by address: ${countWords(picture.blocks.length, "block")} in view, ${byteWords(high - low)} of addresses${many}. ${BLOCK_KEYS}`);
  showRefusals(figure, blocks);
}

/** Small blocks: how much of a cell they cover is how dense it is drawn. */
function drawCells(pen, picture, x, y) {
  const { row, column, length, tag, cover } = picture.cells, [columns, rows] = picture.size;
  const ns = (picture.end_ns - picture.begin_ns) / columns, bytes = (picture.high - picture.low) / rows;
  for (let at = 0; at < row.length; at++) {
    const left = x(picture.begin_ns + column[at] * ns), top = y(picture.low + (row[at] + 1) * bytes);
    pen.globalAlpha = 0.25 + 0.75 * (cover[at] / 16);
    pen.fillStyle = nameColour(tag[at]);
    pen.fillRect(left, top, x(picture.begin_ns + (column[at] + length[at]) * ns) - left, y(picture.low + row[at] * bytes) - top);
  }
  pen.globalAlpha = 1;
}

/** When an allocation was refused, and the largest hole there was. */
function drawHoles(pen, picture, x, y) {
  for (const [ns, position, bytes] of picture.holes) {
    pen.fillStyle = colours.fault;
    pen.fillRect(x(ns) - 1, 0, 2, pen.canvas.height);
    pen.strokeStyle = colours.fault;
    pen.lineWidth = 1.5;
    pen.setLineDash([4, 3]);
    pen.strokeRect(x(ns) - 40, y(position + bytes), 40, Math.max(2, y(position) - y(position + bytes)));
    pen.setLineDash([]);
  }
}

/** The first address of each range, and a line where addresses were left out. */
function drawAddresses(pen, picture, y, height) {
  pen.font = "11px ui-monospace, monospace";
  pen.textBaseline = "bottom";
  let last = Infinity;
  for (const range of picture.ranges) {
    const at = y(range.position);
    if (at < 0 || at > height + 0.5) continue;
    pen.fillStyle = colours.line;
    if (range.position > 0) pen.fillRect(0, at - 1, pen.canvas.width, 2);
    pen.fillStyle = colours.quiet;
    if (last - at > 12) { pen.fillText(range.address, 8, Math.max(12, at - 1)); last = at; }
  }
  pen.textBaseline = "alphabetic";
  pen.fillStyle = colours.quiet;
  pen.fillText(byteWords(picture.high - picture.low), 8, 12);
}

/** Allocations that were refused, in words: what was asked for, who held most, and the largest hole. */
function showRefusals(figure, blocks) {
  const own = state.refusals.filter((each) => each.place === blocks.place).slice(0, 20);
  const words = own.map((each) => {
    const hole = each.hole ? ` The largest hole between blocks was ${byteWords(each.hole.bytes)} at ${each.hole.address}; ${byteWords(each.bytes)} were wanted.` : "";
    return make("p", { class: "fault" }, `${each.message}.${hole}`);
  });
  figure.querySelector(".refusals").replaceChildren(...words);
}
