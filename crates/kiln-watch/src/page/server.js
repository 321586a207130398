// What the page asks the server.

let state = null;
const names = [];

async function ask(what, values) {
  const query = new URLSearchParams(values || {}).toString();
  const answer = await fetch(query ? `${what}?${query}` : what);
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answered with ${answer.status}`);
  return answer.json();
}

/** Reads the state of the recording, and names that are new. */
async function readState() {
  const next = await ask("state");
  const isOther = state && (next.names < names.length || next.events < state.events);
  if (isOther) names.length = 0;
  if (next.names > names.length) names.push(...(await ask("names", { first: names.length })));
  const changed = !state || next.version !== state.version;
  state = next;
  return { changed, isOther };
}

const workNames = new Map();
/** What is known of a work; asked once for each state of the file. */
function askWork(row, number) {
  const key = `${state.version}/${row}/${number}`;
  if (!workNames.has(key)) {
    if (workNames.size > 200) workNames.clear();
    const asked = ask("work", { row, number });
    asked.catch(() => workNames.delete(key));
    workNames.set(key, asked);
  }
  return workNames.get(key);
}

function showProblem(text) {
  const problem = byId("problem");
  problem.hidden = !text;
  problem.textContent = text || "";
}
