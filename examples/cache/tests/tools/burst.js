// The same as burst.py, by ioredis.
const Redis = require("ioredis");

const [port, keys] = process.argv.slice(2).map(Number);
const client = new Redis(port, { retryStrategy: null });
const heard = new Set();
client.on("error", console.error);
client.on("end", () => process.exit(heard.size === keys ? 0 : 1));
client.on("message", (_, key) => {
  heard.add(key);
  if (heard.size === keys) {
    console.log("all is well");
    client.disconnect();
  }
});
client.subscribe("__keyevent@0__:expired").then(() => console.log("ready"));
