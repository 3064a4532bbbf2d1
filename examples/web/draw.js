// Draws where each timer lies. The wheel and the bucket come from the timer's tick and the present one, as in the crate:
// the wheel is the highest digit, to the base 64, in which the two differ, and the bucket is that digit.
import load, { Timers } from './wheels_alive.js';

const BITS = 6, BUCKETS = 1 << BITS, TURN = 2 * Math.PI;
const COLOURS = ['#ffd166', '#4ecdc4', '#8f9bff'];
// The inner and outer edge of each wheel, the finest first, as parts of the picture's half.
const RINGS = [[0.25, 0.42], [0.46, 0.69], [0.73, 0.96]];
const FALL = 450, BURST = 450, APPEAR = 600;

const still = matchMedia('(prefers-reduced-motion: reduce)');
const canvas = document.querySelector('canvas'), context = canvas.getContext('2d');
const show = (id, text) => { document.getElementById(id).textContent = text; };
const grouped = (number) => number.toLocaleString('en');

await load({ module_or_path: 'wheels_alive_bg.wasm' });
const timers = new Timers();
const count = timers.due().length;
// Where a dot stands within its bucket: the same in all of them.
const across = Float32Array.from({ length: count }, (_, number) => 0.14 + 0.72 * (number * 0.618034 % 1));
const depth = Float32Array.from({ length: count }, (_, number) => 0.05 + 0.9 * (number * 0.754878 % 1));
// The bucket in which it was drawn; from which point it moves, and since when.
const place = new Int32Array(count).fill(-1);
const fromAngle = new Float32Array(count), fromRadius = new Float32Array(count), since = new Float64Array(count);
const born = new Float64Array(count).fill(-APPEAR);
const angle = new Float32Array(count), radius = new Float32Array(count);
let bursts = [], firedInAll = 0, recent = [], glow = [0, 0, 0], former = [-1, -1, -1];

const ease = (part) => 1 - (1 - part) ** 3;
const levelOf = (due, now) => (due >>> BITS === now >>> BITS ? 0 : due >>> 2 * BITS === now >>> 2 * BITS ? 1 : 2);

// Moves the dots, and returns how many lie on each wheel.
function move(now, time) {
  const due = timers.due(), lying = [0, 0, 0];
  for (const number of timers.take_fired()) {
    firedInAll += 1;
    recent.push(time);
    // From its bucket of the finest wheel, however far it has come on its way there.
    if (!still.matches && place[number] >= 0) {
      const [inner, outer] = RINGS[0], bucket = place[number] % BUCKETS;
      const from = place[number] < BUCKETS ? (bucket + across[number]) / BUCKETS * TURN : angle[number];
      bursts.push({ angle: from, radius: inner + (outer - inner) * depth[number], time });
    }
    place[number] = -1;
    born[number] = time;
  }
  for (let number = 0; number < count; number += 1) {
    const at = Math.max(due[number], now), level = levelOf(at, now);
    const bucket = (at >>> level * BITS) % BUCKETS, here = level * BUCKETS + bucket;
    lying[level] += 1;
    if (here !== place[number]) {
      const falls = place[number] >= 0 && !still.matches;
      since[number] = falls ? time + 150 * depth[number] : -FALL;
      fromAngle[number] = angle[number];
      fromRadius[number] = radius[number];
      place[number] = here;
    }
    const [inner, outer] = RINGS[level];
    let toAngle = (bucket + across[number]) / BUCKETS * TURN;
    const toRadius = inner + (outer - inner) * depth[number];
    const part = Math.min(Math.max((time - since[number]) / FALL, 0), 1);
    if (part < 1) {
      // The shorter way round.
      const turn = ((toAngle - fromAngle[number] + 1.5 * TURN) % TURN) - TURN / 2;
      toAngle = fromAngle[number] + turn * ease(part);
      radius[number] = fromRadius[number] + (toRadius - fromRadius[number]) * part * part;
    } else {
      radius[number] = toRadius;
    }
    angle[number] = toAngle;
  }
  return lying;
}

function drawRings(half, now, time) {
  RINGS.forEach(([inner, outer], level) => {
    const position = now / BUCKETS ** level, hand = Math.floor(position) % BUCKETS;
    if (hand !== former[level]) { glow[level] = time; former[level] = hand; }
    const fresh = still.matches || level === 0 ? 0.5 : Math.max(1 - (time - glow[level]) / 1200, 0);
    const wedge = (from, to) => {
      context.beginPath();
      context.arc(0, 0, outer * half, from, to);
      context.arc(0, 0, inner * half, to, from, true);
      context.closePath();
    };
    context.fillStyle = COLOURS[level];
    context.globalAlpha = 0.035;
    wedge(0, TURN);
    context.fill();
    // The bucket of the clock, and a tail of those that it has passed.
    for (let back = 0; back < 7; back += 1) {
      context.globalAlpha = (0.2 + 0.25 * fresh) * (1 - back / 7) ** 2;
      wedge((hand - back) / BUCKETS * TURN, (hand - back + 1) / BUCKETS * TURN);
      context.fill();
    }
    context.globalAlpha = 0.16;
    context.strokeStyle = COLOURS[level];
    context.lineWidth = half / 700;
    context.beginPath();
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      const [x, y] = [Math.cos(bucket / BUCKETS * TURN), Math.sin(bucket / BUCKETS * TURN)];
      context.moveTo(x * inner * half, y * inner * half);
      context.lineTo(x * outer * half, y * outer * half);
    }
    context.stroke();
  });
}

function drawDots(half, time) {
  const size = Math.max(half / 210, 1.3);
  COLOURS.forEach((colour, level) => {
    context.fillStyle = colour;
    for (let number = 0; number < count; number += 1) {
      if (place[number] >> BITS !== level) continue;
      const age = still.matches ? 1 : Math.min((time - born[number]) / APPEAR, 1);
      const falling = time - since[number] < FALL;
      context.globalAlpha = falling ? 1 : 0.15 + 0.65 * age;
      const side = size * (falling ? 1.5 : 1);
      const [x, y] = [Math.cos(angle[number]) * radius[number], Math.sin(angle[number]) * radius[number]];
      context.fillRect(x * half - side / 2, y * half - side / 2, side, side);
    }
  });
}

function drawBursts(half, time) {
  bursts = bursts.filter((burst) => time - burst.time < BURST);
  context.strokeStyle = '#ff5d73';
  context.lineWidth = Math.max(half / 420, 0.8);
  context.lineCap = 'round';
  for (const burst of bursts) {
    const part = (time - burst.time) / BURST;
    const [head, tail] = [burst.radius, burst.radius].map((from, end) =>
      from + (0.13 - from) * ease(Math.max(part - 0.12 * end, 0)));
    context.globalAlpha = 0.7 * (1 - part) ** 1.5;
    const [x, y] = [Math.cos(burst.angle) * half, Math.sin(burst.angle) * half];
    context.beginPath();
    context.moveTo(x * head, y * head);
    context.lineTo(x * tail, y * tail);
    context.stroke();
  }
}

function draw(time) {
  const side = Math.round(canvas.clientWidth * devicePixelRatio);
  if (canvas.width !== side) canvas.width = canvas.height = side;
  const half = side / 2, now = Math.floor(timers.now());
  const lying = move(now, time);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, side, side);
  // Twelve o'clock is the first bucket.
  context.setTransform(0, -1, 1, 0, half, half);
  drawRings(half, now, time);
  drawDots(half, time);
  drawBursts(half, time);
  recent = recent.filter((fired) => time - fired < 1000);
  return lying;
}

let toldAt = -Infinity;
function frame(time) {
  if (!still.matches || time - toldAt >= 1000) {
    const lying = draw(time);
    if (time - toldAt >= 250) {
      toldAt = time;
      lying.forEach((dots, level) => show(`wheel${level}`, grouped(dots)));
      show('fired', grouped(firedInAll));
      show('rate', grouped(recent.length));
      show('memory', `The module has ${(timers.memory() / 2 ** 20).toFixed(1)} MiB of memory.`);
    }
  }
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
