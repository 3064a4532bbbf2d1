// Runs each exported behaviour in an instance of the module of its own, and counts the timeouts that are pending.
// A behaviour whose name begins with `stubbed_` has a clock and timeouts that `pass` moves.
const own = {
  set: setTimeout.bind(globalThis), clear: clearTimeout.bind(globalThis), now: performance.now.bind(performance),
};
const LIMIT = 30_000;

let pending = new Map();
let most, made, stub;

globalThis.setTimeout = (call, delay, ...rest) => {
  // What a browser does with the delay: a number of 32 bits, none below 0.
  const after = Math.max(delay | 0, 0);
  const run = () => { pending.delete(id); call(...rest); };
  const id = stub ? ++made : own.set(run, after);
  if (!stub) made += 1;
  pending.set(id, { run, due: (stub?.now ?? 0) + after });
  most = Math.max(most, pending.size);
  return id;
};
globalThis.clearTimeout = (id) => { pending.delete(id); if (!stub) own.clear(id); };
performance.now = () => stub?.now ?? own.now();

// A trap of the module, which the run reports, would end a worker.
addEventListener('error', (event) => event.preventDefault());

const afterMicrotasks = () => new Promise((done) => own.set(done, 0));

// What the behaviours ask.
globalThis.timeoutsPending = () => pending.size;
globalThis.mostTimeouts = () => most;
globalThis.timeoutsMade = () => made;
globalThis.nextTask = afterMicrotasks;
// Lets time pass by the stub. A browser that throttles wakes at multiples of `every` milliseconds alone.
globalThis.pass = async (millis, every) => {
  const end = stub.now + millis;
  for (;;) {
    await afterMicrotasks();
    const [next] = [...pending.values()].sort((one, other) => one.due - other.due);
    const wake = next && Math.max(stub.now, Math.ceil(next.due / every) * every);
    if (!next || wake > end) break;
    stub.now = wake;
    next.run();
  }
  stub.now = end;
};

async function run(name, module) {
  pending = new Map();
  [most, made, stub] = [0, 0, name.startsWith('stubbed_') ? { now: 1_000.25 } : undefined];
  const failure = new Promise((_, fail) => {
    globalThis.failed = (message) => fail(new Error(message));
    own.set(() => fail(new Error('it has not ended')), LIMIT);
  });
  // A query makes it a module of its own, with memory of its own.
  const instance = await import(`./behaviour.js?${name}`);
  await instance.default({ module_or_path: module });
  return await Promise.race([instance[name](), failure]);
}

export async function runAll(place) {
  const module = await WebAssembly.compileStreaming(fetch('./behaviour_bg.wasm'));
  const hidden = new Set(['default', 'initSync']);
  const names = Object.keys(await import('./behaviour.js')).filter((name) => !hidden.has(name));
  const lines = [];
  for (const name of names) {
    const begun = own.now();
    const result = await run(name, module).then((text) => `ok ${text ?? ''}`, (error) => `FAILED ${error.message}`);
    // What the instance has left would run beside the next one.
    await afterMicrotasks();
    [...pending.keys()].forEach(clearTimeout);
    const wanted = name.includes('panics') ? result.replace(/^FAILED .*(on purpose).*/s, 'ok, it traps $1') : result;
    lines.push(`${place} ${name}: ${wanted} (${Math.round(own.now() - begun)} ms)`.replaceAll('\n', ' '));
  }
  return lines;
}
