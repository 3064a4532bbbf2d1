import { runAll } from './harness.js';
postMessage(await runAll('worker'));
