// What the page asks the server, and the recordings of several ranks as one.

let state = null, job = null;
const names = [];
/** The numbers of names, rows of the page by recording and row, and for each recording what its names are called here. */
const nameNumbers = new Map(), rowNumbers = new Map(), nameTables = [];

async function ask(what, values) {
  const query = new URLSearchParams(values || {}).toString();
  const answer = await fetch(query ? `${what}?${query}` : what);
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answered with ${answer.status}`);
  return answer.json();
}

const offsetOf = (rec) => (job && job.recordings[rec] ? job.recordings[rec].offset_ns : 0);
const later = (ns, rec) => (ns === null || ns === undefined ? ns : ns + offsetOf(rec));
const nameHere = (rec, name) => (name === null || name === undefined ? name : nameTables[rec][name]);
/** What a recording is called where there are several. */
const rankWords = (rec) => {
  const { ranks, file } = job.recordings[rec];
  return ranks.length === 1 ? `Rank ${ranks[0]}` : ranks.length ? `Ranks ${ranks.join(", ")}` : file.split("/").pop();
};

function nameNumber(text) {
  let number = nameNumbers.get(text);
  if (number === undefined) {
    number = names.length;
    names.push(text);
    nameNumbers.set(text, number);
  }
  return number;
}

/** The number on this page of a row of a recording. */
function rowHere(rec, row) {
  if (row === null || row === undefined) return row;
  const key = `${rec}/${row}`;
  if (!rowNumbers.has(key)) rowNumbers.set(key, rowNumbers.size);
  return rowNumbers.get(key);
}

/** Reads the state of all recordings, and names that are new. */
async function readState() {
  const nextJob = await ask("job");
  const count = Math.max(1, nextJob.recordings.length);
  const parts = await Promise.all(Array.from({ length: count }, (_, rec) => ask("state", { r: rec })));
  const isOther = state && (parts.length < state.parts.length || state.parts.some((old, rec) => parts[rec].names < old.names || parts[rec].events < old.events || parts[rec].file !== old.file));
  if (isOther) {
    names.length = 0;
    nameTables.length = 0;
    nameNumbers.clear();
    rowNumbers.clear();
  }
  for (const [rec, part] of parts.entries()) {
    nameTables[rec] = nameTables[rec] || [];
    const table = nameTables[rec];
    if (part.names > table.length) for (const name of await ask("names", { first: table.length, r: rec })) table.push(nameNumber(name));
  }
  job = nextJob;
  const next = joined(parts);
  const changed = !state || next.version !== state.version;
  state = next;
  return { changed, isOther };
}

/** The states of several recordings as one, on one time axis. */
function joined(parts) {
  const all = (what, change) => parts.flatMap((part, rec) => part[what].map((each) => ({ ...each, rec, place: `${rec}/${each.device}`, ...change(each, rec) })));
  const sum = (what) => parts.reduce((so, part) => so + part[what], 0);
  const rows = [];
  parts.forEach((part, rec) => part.rows.forEach((row, own) => { rows[rowHere(rec, own)] = { ...row, rec, own }; }));
  const known = parts.map((part, rec) => [part, rec]).filter(([part]) => part.end_ns > 0);
  const times = known.length ? known : [[parts[0], 0]];
  return {
    ...parts[0], parts, rows,
    version: sum("version") + parts.length * 1e6,
    events: sum("events"), file_bytes: sum("file_bytes"), read_bytes: sum("read_bytes"), hidden_events: sum("hidden_events"), fault_count: sum("fault_count"), finding_count: sum("finding_count"),
    file: parts.length === 1 ? parts[0].file : countWords(parts.length, "recording"),
    program: (parts.find((part) => part.program) || parts[0]).program,
    begin_ns: Math.min(...times.map(([part, rec]) => later(part.begin_ns, rec))), end_ns: Math.max(...times.map(([part, rec]) => later(part.end_ns, rec))),
    problem: parts.map((part) => part.problem).find(Boolean) || null,
    is_at_end: parts.every((part) => part.is_at_end), is_cut: parts.some((part) => part.is_cut), has_end_mark: parts.every((part) => part.has_end_mark),
    has_memory: parts.some((part) => part.has_memory),
    missing_why: parts.map((part) => part.missing_why).filter(Boolean).join(" "),
    damaged: parts.flatMap((part) => part.damaged),
    devices: all("devices", () => ({})),
    faults: all("faults", (fault, rec) => ({ time_ns: later(fault.time_ns, rec), work: fault.work && [rowHere(rec, fault.work[0]), fault.work[1]] })),
    findings: all("findings", (finding, rec) => ({ time_ns: later(finding.time_ns, rec), work: finding.work && [rowHere(rec, finding.work[0]), finding.work[1]] })),
    takeovers: all("takeovers", (step, rec) => ({ begin_ns: later(step.begin_ns, rec), end_ns: later(step.end_ns, rec) })),
    post_mortems: all("post_mortems", (found, rec) => ({ time_ns: later(found.time_ns, rec) })),
    heap_changes: all("heap_changes", (change, rec) => ({ time_ns: later(change.time_ns, rec) })),
    workers: all("workers", (worker, rec) => ({ begin_ns: later(worker.begin_ns, rec), end_ns: worker.end_ns === null ? null : later(worker.end_ns, rec) })),
    refusals: all("refusals", (each, rec) => ({ time_ns: later(each.time_ns, rec) })),
    collectives: all("collectives", (each, rec) => ({ name: nameHere(rec, each.name) })),
  };
}

/** A tile of some rows of a recording, with the page's names. */
async function askRows(rec, level, index, first, rows) {
  const answer = await ask("tile", { level, index, first, rows, r: rec });
  for (const row of answer.rows) {
    const content = row.works || row.sums;
    content.name = content.name.map((name) => nameHere(rec, name));
  }
  return answer.rows;
}

/** What is known of a work, on the page's time axis. */
async function fetchWork(row, number) {
  const { rec, own } = state.rows[row];
  const work = await ask("work", { row: own, number, r: rec });
  const span = (times) => times && times.map((ns) => later(ns, rec));
  const gap = work.gap && {
    ...work.gap, begin_ns: later(work.gap.begin_ns, rec), end_ns: later(work.gap.end_ns, rec),
    waits: work.gap.waits.map((wait) => ({ ...wait, row: rowHere(rec, wait.row), end_ns: later(wait.end_ns, rec) })),
  };
  return { ...work, row, host_ns: span(work.host_ns), device_ns: span(work.device_ns), gap };
}

const workNames = new Map();
/** The same; asked once for each state of the file. */
function askWork(row, number) {
  const key = `${state.version}/${row}/${number}`;
  if (!workNames.has(key)) {
    if (workNames.size > 200) workNames.clear();
    const asked = fetchWork(row, number);
    asked.catch(() => workNames.delete(key));
    workNames.set(key, asked);
  }
  return workNames.get(key);
}

const placeHere = (place, rec) => ({ ...place, row: rowHere(rec, place.row), begin_ns: later(place.begin_ns, rec), end_ns: later(place.end_ns, rec) });

/** Names of work that contain a text; a name that several recordings have is one. */
async function askFind(text) {
  const found = new Map();
  for (const [rec] of state.parts.entries()) {
    for (const each of await ask("find", { q: text, r: rec })) {
      const name = nameHere(rec, each.name), known = found.get(name), longest = placeHere(each.longest, rec);
      if (!known) { found.set(name, { ...each, name, longest }); continue; }
      known.count += each.count;
      known.total_ns += each.total_ns;
      if (longest.end_ns - longest.begin_ns > known.longest.end_ns - known.longest.begin_ns) known.longest = longest;
    }
  }
  return [...found.values()].sort((a, b) => b.total_ns - a.total_ns);
}

/** The nearest work of any recording whose name contains a text. */
async function askNext(text, from, isBack) {
  let best = null;
  for (const [rec] of state.parts.entries()) {
    const own = Math.round(from) - offsetOf(rec);
    const place = own < 0 && isBack ? null : await ask("next", { q: text, from: Math.max(0, own), back: isBack ? 1 : 0, r: rec });
    if (!place) continue;
    const here = placeHere(place, rec);
    if (!best || (isBack ? here.begin_ns > best.begin_ns : here.begin_ns < best.begin_ns)) best = here;
  }
  return best;
}

function showProblem(text) {
  const problem = byId("problem");
  problem.hidden = !text;
  problem.textContent = text || "";
}
