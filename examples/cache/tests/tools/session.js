// A session of node-redis or ioredis. Arguments: the name of the client, and the port. When it writes `restart`, the
// server is to be started anew; a line of input says that it has been.
const assert = require("node:assert");
const { once } = require("node:events");
const { createClient } = require("redis");
const Redis = require("ioredis");
const [name, port] = [process.argv[2], Number(process.argv[3])];
const EXPIRED = "__keyevent@*__:expired";

async function restart() {
  console.log("restart");
  await once(process.stdin, "data");
}

// The client connects again by itself. What it has sent before it knows of the end may fail.
async function again(run) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (attempt === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

// The listener subscribes again by itself; until it has, it hears nothing.
async function hears(heard, expire) {
  while (heard.length === 0) {
    await expire();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.equal(heard[0], "shorter");
}

async function nodeRedis(RESP) {
  const heard = [];
  const client = createClient({ RESP, socket: { host: "127.0.0.1", port } });
  client.on("error", () => {});
  await client.connect();
  assert.equal(await client.set("a", "1", { EX: 100 }), "OK");
  assert.equal(await client.get("a"), "1");
  assert.deepEqual(await Promise.all([client.incr("n"), client.get("none"), client.mGet(["a", "none"])]), [1, null, ["1", null]]);
  assert.deepEqual(await client.multi().set("t", "1").incr("t").get("t").exec(), ["OK", 2, "2"]);
  // Another client changes the key that this one watches.
  await client.watch("t");
  const other = client.duplicate();
  other.on("error", () => {});
  await other.connect();
  await other.set("t", "5");
  await assert.rejects(client.multi().incr("t").exec(), /watched keys has been changed/);
  await client.watch("t");
  assert.deepEqual(await client.multi().incr("t").ping().exec(), [6, "PONG"]);
  await client.configSet("notify-keyspace-events", "Ex");
  const listener = client.duplicate();
  listener.on("error", () => {});
  await listener.connect();
  await listener.pSubscribe(EXPIRED, (key) => heard.push(key));
  await hears(heard, () => client.set("shorter", "v", { PX: 20 }));

  await restart();
  await again(() => client.set("a", "new"));
  assert.equal(await client.get("a"), "new");
  assert.equal(await client.get("n"), null);
  assert.deepEqual(await client.multi().set("t", "1").incr("t").exec(), ["OK", 2]);
  await client.configSet("notify-keyspace-events", "Ex");
  heard.length = 0;
  await hears(heard, () => client.set("shorter", "v", { PX: 20 }));
  assert.equal(await client.flushAll(), "OK");
  await Promise.all([client, listener].map((it) => it.close()));
  other.destroy();
}

async function io() {
  const heard = [];
  const client = new Redis(port);
  client.on("error", () => {});
  assert.equal(await client.set("a", "1", "EX", 100), "OK");
  assert.deepEqual(await client.pipeline().get("a").incr("n").exec(), [[null, "1"], [null, 1]]);
  assert.deepEqual(await client.multi().set("t", "1").incr("t").exec(), [[null, "OK"], [null, 2]]);
  assert.equal(await client.setnx("a", "2"), 0);
  await client.watch("t");
  await client.set("t", "5");
  assert.equal(await client.multi().incr("t").exec(), null);
  await client.config("SET", "notify-keyspace-events", "Ex");
  const listener = new Redis(port);
  listener.on("error", () => {});
  listener.on("pmessage", (pattern, channel, key) => heard.push(key));
  await listener.psubscribe(EXPIRED);
  await hears(heard, () => client.set("shorter", "v", "PX", 20));
  if ((await client.info("server")).includes("in_one_piece_per_thread")) {
    // Another database is never this one. (A Redis with one database leaves the client in it.)
    const other = new Redis(port, { db: 1, maxRetriesPerRequest: 1, retryStrategy: () => 10 });
    other.on("error", () => {});
    await assert.rejects(other.set("shared", "v"));
    other.disconnect();
    assert.equal(await client.exists("shared"), 0);
  }

  await restart();
  await again(() => client.set("a", "new"));
  assert.equal(await client.get("a"), "new");
  assert.equal(await client.get("n"), null);
  assert.deepEqual(await client.multi().set("t", "1").incr("t").exec(), [[null, "OK"], [null, 2]]);
  await client.config("SET", "notify-keyspace-events", "Ex");
  heard.length = 0;
  await hears(heard, () => client.set("shorter", "v", "PX", 20));
  await Promise.all([client.quit(), listener.quit()]);
}

const sessions = { "node-redis-2": () => nodeRedis(2), "node-redis-3": () => nodeRedis(3), ioredis: io };
sessions[name]().then(() => {
  console.log("all is well");
  process.exit();
});
