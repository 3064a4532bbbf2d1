// Runs a WebAssembly program that has a `main`, and ends with its exit code: `node .ci/wasm.mjs PROGRAM ARGUMENTS`.
// A program without a system interface can print nothing; it ends by a trap if it fails.
import { readFile } from 'node:fs/promises';
import { argv, exit } from 'node:process';

const program = await WebAssembly.compile(await readFile(argv[2]));
if (WebAssembly.Module.imports(program).length === 0) {
  const { exports } = await WebAssembly.instantiate(program);
  exit(exports.main(0, 0));
}
const { WASI } = await import('node:wasi');
const wasi = new WASI({ version: 'preview1', args: argv.slice(2) });
exit(wasi.start(await WebAssembly.instantiate(program, wasi.getImportObject())));
