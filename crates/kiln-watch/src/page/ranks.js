// Ranks of a job: collectives on one time axis, and who came late.

let calls = [], callsFor = "", isAskingCalls = false;

function showRanks() {
  const section = byId("view-ranks");
  const rows = state.collectives.map((each) => [names[each.name] || "", each.communicator, `${each.rank} of ${each.ranks}`, each.count.toLocaleString("en"), byteWords(each.bytes), timeWords(each.ns), timeWords(each.longest_ns)]);
  const heads = [["Collective"], ["Communicator"], ["Rank"], ["Times", true], ["Bytes", true], ["Altogether", true], ["Longest", true]];
  const parts = [];
  if (state.parts.length > 1) {
    parts.push(make("p", { id: "clocks" }, job.axis));
    parts.push(table([["Rank"], ["Recording"], ["Begins", true]], job.recordings.map((each, rec) => [rankWords(rec), each.file, timeWords(each.offset_ns)])));
  }
  if (job.collectives) {
    parts.push(make("h2", {}, "Collectives by rank"), make("canvas", { class: "ranks", role: "img" }));
    const late = job.late.map((each) => [
      each.sentence, timeWords(each.late_ns),
      make("button", { type: "button", onclick: () => { setSpan(Math.min(...each.parts.map((part) => part.begin_ns)) - each.late_ns * 0.3, Math.max(...each.parts.map((part) => part.end_ns)) + each.late_ns * 0.3); setView("timeline"); } }, "Go there"),
    ]);
    parts.push(make("h2", {}, late.length ? "Ranks that came late" : "No rank came late"));
    if (job.late_ranks.length) parts.push(make("ul", { id: "late-ranks" }, ...job.late_ranks.map((words) => make("li", {}, words))));
    if (late.length) parts.push(table([["Collective"], ["Late by", true], [""]], late));
  }
  if (rows.length) parts.push(make("h2", {}, "Altogether"), table(heads, rows));
  section.replaceChildren(...(parts.length ? parts : [make("p", { class: "quiet" }, "The recording has no collectives.")]));
  drawCalls();
}

/** A row for each rank: when it was in which collective, and how much of that it waited for the last. */
async function drawCalls() {
  const picture = document.querySelector("#view-ranks canvas.ranks");
  if (!picture) return;
  const span = seenSpan(), wanted = `${span}/${state.version}`;
  if (wanted !== callsFor && !isAskingCalls) {
    isAskingCalls = true;
    try {
      calls = await ask("collectives", { begin: span[0], end: span[1] });
      callsFor = wanted;
    } catch (error) { showProblem(error.message); }
    isAskingCalls = false;
  }
  const ranks = [...new Set(calls.flatMap((call) => call.parts.map((part) => part.rank)))].sort((a, b) => a - b);
  picture.style.height = `${AXIS + Math.max(1, ranks.length) * ROW}px`;
  const ratio = devicePixelRatio || 1, box = picture.getBoundingClientRect();
  picture.width = Math.max(1, Math.round(box.width * ratio));
  picture.height = Math.max(1, Math.round(box.height * ratio));
  const pen = picture.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, 'Open Sans', sans-serif";
  pen.textBaseline = "middle";
  const x = (ns) => LABELS + ((ns - view.begin) / (view.end - view.begin)) * (box.width - LABELS);
  pen.fillStyle = colours.quiet;
  pen.fillText(`${timeWords(view.end - view.begin)} in view`, 8, AXIS / 2);
  ranks.forEach((rank, at) => { pen.fillStyle = colours.front; pen.fillText(`Rank ${rank}`, 20, AXIS + at * ROW + ROW / 2); });
  pen.save();
  pen.beginPath();
  pen.rect(LABELS, 0, box.width - LABELS, box.height);
  pen.clip();
  for (const call of calls) {
    const last = Math.max(...call.parts.map((part) => part.begin_ns));
    for (const part of call.parts) {
      const top = AXIS + ranks.indexOf(part.rank) * ROW + 4, left = x(part.begin_ns), came = x(Math.min(last, part.end_ns)), right = x(part.end_ns);
      pen.fillStyle = nameColour(nameNumber(call.name));
      pen.fillRect(left, top, Math.max(1, right - left), ROW - 8);
      // The time of simulated devices stands still while a rank waits.
      if (!job.has_waits) continue;
      pen.fillStyle = colours.wait;
      pen.fillRect(left, top, Math.max(0, came - left), ROW - 8);
    }
  }
  pen.restore();
  const worst = job.late[0] ? ` The latest: ${job.late[0].sentence}.` : "";
  picture.setAttribute("aria-label", `${countWords(calls.length, "collective")} of ${countWords(ranks.length, "rank")} in view; the time in which a rank waited for the last is marked.${worst}`);
}
