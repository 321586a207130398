// Memory by tag over time.

let curves = [], curvesFor = "", isAskingCurves = false;

/** The part of the time that is seen, in whole nanoseconds of the page. */
const seenSpan = () => [Math.max(0, Math.floor(view.begin)), Math.max(1, Math.ceil(view.end))];

async function drawMemory() {
  const section = byId("view-memory");
  if (!state.has_memory) {
    if (!section.querySelector("#no-memory")) section.replaceChildren(make("p", { class: "quiet", id: "no-memory" }, "The recording has no allocations."));
    return;
  }
  const span = seenSpan(), wanted = `${span}/${state.version}`;
  if (wanted !== curvesFor && !isAskingCurves) {
    isAskingCurves = true;
    try {
      const all = await Promise.all(state.parts.map((_, rec) => ask("memory", { begin: Math.max(0, span[0] - offsetOf(rec)), end: Math.max(1, span[1] - offsetOf(rec)), points: 1024, r: rec })));
      curves = all.flatMap((part, rec) => part.map((curve) => curveHere(curve, rec)));
      curvesFor = wanted;
    } catch (error) { showProblem(error.message); }
    isAskingCurves = false;
  }
  for (const curve of curves) drawCurve(section, curve);
  for (const old of section.querySelectorAll("[data-device]")) if (!curves.some((curve) => curve.place === old.dataset.device)) old.remove();
  const gone = section.querySelector("#no-memory");
  if (gone) gone.remove();
  await drawBlocks(section);
  if (wanted !== `${seenSpan()}/${state.version}`) redraw();
}

const curveHere = (curve, rec) => ({
  ...curve, rec, place: `${rec}/${curve.device}`, begin_ns: later(curve.begin_ns, rec), peak_ns: later(curve.peak_ns, rec),
  tags: curve.tags.map((tag) => ({ ...tag, tag: nameHere(rec, tag.tag) })),
});

const deviceOf = (rec, number) => state.devices.find((each) => each.rec === rec && each.device === number);

/** What a device is called. */
const deviceWords = (rec, number) => {
  const device = deviceOf(rec, number);
  return `${state.parts.length > 1 ? `${rankWords(rec)}, device` : "Device"} ${number}${device && device.name ? `: ${device.name}` : ""}`;
};

const tagWords = (tag) => (tag === null ? "(other tags)" : names[tag] || "(no tag)");

function drawCurve(section, curve) {
  let figure = section.querySelector(`[data-device="${curve.place}"]`);
  if (!figure) {
    figure = make("div", { "data-device": curve.place }, make("h2", {}), make("canvas", { class: "memory", role: "img" }), make("table", {}), make("div", { class: "heap-changes" }));
    section.append(figure);
  }
  figure.querySelector("h2").textContent = deviceWords(curve.rec, curve.device);
  const most = Math.max(1, curve.peak_bytes, ...curve.heap);
  const sorted = curve.tags.map((tag) => ({ ...tag, last: tag.bytes[tag.bytes.length - 1] || 0 })).sort((a, b) => b.most - a.most);
  const picture = figure.querySelector("canvas"), ratio = devicePixelRatio || 1, box = picture.getBoundingClientRect();
  picture.width = Math.max(1, Math.round(box.width * ratio));
  picture.height = Math.max(1, Math.round(box.height * ratio));
  const pen = picture.getContext("2d");
  pen.scale(ratio, ratio);
  const left = LABELS, wide = box.width - left, high = box.height - 16;
  const x = (at) => left + ((curve.begin_ns + at * curve.step_ns - view.begin) / (view.end - view.begin)) * wide;
  const y = (bytes) => 8 + high * (1 - bytes / (most * 1.05));
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, wide, box.height);
  pen.clip();
  const floor = new Array(curve.high.length).fill(0);
  for (const tag of [...sorted].reverse()) {
    pen.fillStyle = nameColour(tag.tag === null ? 1e4 : tag.tag);
    pen.beginPath();
    for (let at = 0; at < floor.length; at++) { pen.lineTo(x(at), y(floor[at])); pen.lineTo(x(at + 1), y(floor[at])); }
    for (let at = floor.length - 1; at >= 0; at--) {
      floor[at] += Math.max(0, tag.at_high[at]);
      pen.lineTo(x(at + 1), y(floor[at]));
      pen.lineTo(x(at), y(floor[at]));
    }
    pen.fill();
  }
  pen.strokeStyle = colours.front;
  pen.beginPath();
  curve.high.forEach((bytes, at) => { pen.lineTo(x(at), y(bytes)); pen.lineTo(x(at + 1), y(bytes)); });
  pen.stroke();
  drawHeap(pen, curve, x, y);
  pen.restore();
  pen.fillStyle = colours.quiet;
  pen.font = "12px system-ui, 'Open Sans', sans-serif";
  pen.fillText(`most: ${byteWords(curve.peak_bytes)}`, 8, 20);
  pen.fillText(`at ${timeWords(curve.peak_ns)}`, 8, 36);
  const known = deviceOf(curve.rec, curve.device), holder = known && known.is_pool ? "driver's pool" : "heap";
  const held = curve.heap.length ? `${holder}: ${byteWords(curve.heap[curve.heap.length - 1])} (dashed)` : "";
  pen.fillText(held, 8, 52);
  picture.setAttribute("aria-label", `Memory of device ${curve.device} by tag; at most ${byteWords(curve.peak_bytes)}, at ${timeWords(curve.peak_ns)}${held ? `; ${held}` : ""}`);
  const rows = sorted.slice(0, 12).map((tag) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = nameColour(tag.tag === null ? 1e4 : tag.tag);
    return make("tr", {}, make("td", {}, swatch, tagWords(tag.tag)), make("td", { class: "number" }, byteWords(tag.most)), make("td", { class: "number" }, byteWords(tag.last)));
  });
  figure.querySelector("table").replaceChildren(make("tr", {}, make("th", {}, "Tag"), make("th", { class: "number" }, "Most in view"), make("th", { class: "number" }, "At the end of the view")), ...rows);
  figure.querySelector(".heap-changes").replaceChildren(...heapLines(curve.place));
}

/** What the heap, or the driver's pool, did in the part of the time that is seen: the last few. */
function heapLines(place) {
  const seen = state.heap_changes.filter((each) => each.place === place && each.time_ns >= view.begin && each.time_ns <= view.end);
  const words = (each) => `${timeWords(each.time_ns)}: ${each.what}, ${byteWords(each.bytes)}${each.tag ? `, for \`${each.tag}\`` : ""}${each.line ? ` at ${each.line}` : ""}`;
  const more = seen.length > 8 ? [make("p", { class: "quiet" }, `${countWords(seen.length - 8, "earlier change")} in view`)] : [];
  return [...more, ...seen.slice(-8).map((each) => make("p", { class: "quiet" }, words(each)))];
}

/** What the heap took from the device, dashed, and allocations that it refused. */
function drawHeap(pen, curve, x, y) {
  pen.strokeStyle = colours.queued;
  pen.setLineDash([6, 4]);
  pen.beginPath();
  curve.heap.forEach((bytes, at) => { pen.lineTo(x(at), y(bytes)); pen.lineTo(x(at + 1), y(bytes)); });
  pen.stroke();
  pen.setLineDash([]);
  pen.fillStyle = colours.fault;
  for (const refusal of state.refusals.filter((each) => each.place === curve.place)) {
    const at = x((refusal.time_ns - curve.begin_ns) / curve.step_ns);
    pen.fillRect(at - 1, 0, 2, y(0));
  }
}
