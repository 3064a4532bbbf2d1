// Sessions of node-redis and ioredis. Argument: the port.
const assert = require("node:assert");
const { createClient } = require("redis");
const Redis = require("ioredis");
const port = Number(process.argv[2]);

async function nodeRedis(RESP) {
  const client = await createClient({ RESP, socket: { host: "127.0.0.1", port } }).connect();
  assert.equal(await client.set("a", "1", { EX: 100 }), "OK");
  assert.equal(await client.get("a"), "1");
  assert.deepEqual(await Promise.all([client.incr("n"), client.get("none"), client.mGet(["a", "none"])]), [1, null, ["1", null]]);
  assert.deepEqual(await client.multi().set("t", "1").incr("t").get("t").exec(), ["OK", 2, "2"]);
  await client.configSet("notify-keyspace-events", "Ex");
  const listener = await client.duplicate().connect();
  const expired = new Promise((resolve) => listener.pSubscribe("__keyevent@*__:expired", resolve).then(() => client.set("short", "v", { PX: 20 })));
  assert.equal(await expired, "short");
  assert.equal(await client.flushAll(), "OK");
  await listener.close();
  await client.close();
}

async function io() {
  const client = new Redis(port);
  assert.equal(await client.set("a", "1", "EX", 100), "OK");
  assert.deepEqual(await client.pipeline().get("a").incr("n").exec(), [[null, "1"], [null, 1]]);
  assert.deepEqual(await client.multi().set("t", "1").incr("t").exec(), [[null, "OK"], [null, 2]]);
  assert.equal(await client.setnx("a", "2"), 0);
  const listener = new Redis(port);
  await listener.psubscribe("__keyevent@*__:expired");
  const expired = new Promise((resolve) => listener.on("pmessage", (pattern, channel, key) => resolve(key)));
  await client.set("short", "v", "PX", 20);
  assert.equal(await expired, "short");
  await listener.quit();
  // Another database is never this one.
  const other = new Redis(port, { db: 1, maxRetriesPerRequest: 1, retryStrategy: () => 10 });
  other.on("error", () => {});
  await assert.rejects(other.set("shared", "v"));
  other.disconnect();
  assert.equal(await client.exists("shared"), 0);
  await client.quit();
}

nodeRedis(2).then(() => nodeRedis(3)).then(io).then(() => console.log("all is well"));
