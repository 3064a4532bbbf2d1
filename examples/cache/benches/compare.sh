#!/usr/bin/env bash
# This cache beside Debian's redis-server, in turns: throughput, latency and processor time by redis-benchmark, and the
# loads of `benches/load`. The servers run on one core, the clients on another. On a machine that does nothing else:
#
#   examples/cache/benches/compare.sh [ROUNDS] [THREADS]
#
# ROUNDS (default 5) is how often redis-benchmark runs. THREADS (default 1) is the cache's number of threads, on the core
# that Redis has; with more than one, the cache may use all cores.
set -euo pipefail
cd "$(dirname "$0")/../../.."
ROUNDS=${1:-5} THREADS=${2:-1}

cargo build --release --locked -p cache
LOAD=$(cargo bench --locked -p cache --bench load --no-run 2>&1 | sed -n 's/.*(\(target[^)]*\)).*/\1/p')
ON_SERVER=(taskset -c 0) ON_CLIENT=(taskset -c 1)
[ "$THREADS" = 1 ] || ON_SERVER=() ON_CLIENT=()

PIDS=()
stop() { for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null || true; done; }
trap stop EXIT

start_redis() {
  PORT=16379 NAME=redis
  "${ON_SERVER[@]}" redis-server --port $PORT --bind 127.0.0.1 --save "" --appendonly no "$@" >/dev/null & PID=$!
}
start_cache() {
  PORT=16380 NAME=cache
  "${ON_SERVER[@]}" target/release/cache --listen 127.0.0.1:$PORT --threads "$THREADS" "$@" >/dev/null & PID=$!
}
begin() { "start_$1" "${@:2}"; PIDS+=("$PID"); until redis-cli -p $PORT ping >/dev/null 2>&1; do sleep 0.1; done; }
finish() { kill "$PID"; wait "$PID" 2>/dev/null || true; PIDS=(); }
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }

# Throughput (requests a second), p50 and p99 (ms), processor time of the server (us a request).
benchmark() {
  local pipeline=$1 requests=$2 before after line; shift 2
  before=$(ticks "$PID")
  line=$("${ON_CLIENT[@]}" redis-benchmark -p $PORT -c 50 -P "$pipeline" -n "$requests" -r 100000 --csv "$@" | tail -1)
  after=$(ticks "$PID")
  echo "$line" | tr -d '"' | awk -F, -v name=$NAME -v p="$pipeline" -v what="$1" -v used=$((after - before)) -v n="$requests" \
    -v hz="$(getconf CLK_TCK)" '{ print what, "P=" p, name, $(NF-6), $(NF-3), $(NF-1), used / hz * 1e6 / n }'
}

echo "# command, pipeline, server, requests/s, p50 ms, p99 ms, processor us/request"
for ((round = 0; round < ROUNDS; round++)); do
  for pipeline in 1 16; do
    for server in redis cache; do
      begin $server
      requests=$((pipeline == 1 ? 300000 : 3000000))
      benchmark "$pipeline" "$requests" SET key:__rand_int__ xxx EX 60
      benchmark "$pipeline" "$requests" GET key:__rand_int__
      finish
    done
  done
done

for server in redis cache; do
  echo "# $server: a million keys expire within one second"
  begin $server; "${ON_CLIENT[@]}" "$LOAD" burst --port $PORT --pid "$PID" --number 1000000 --rate "${RATE:-50000}"; finish
  echo "# $server: ten million keys"
  begin $server; "${ON_CLIENT[@]}" "$LOAD" memory --port $PORT --pid "$PID" --number 10000000; finish
  echo "# $server: a thousand stuck clients"
  begin $server; "${ON_CLIENT[@]}" "$LOAD" stuck --port $PORT --pid "$PID" --number 1000; finish
done
echo "# cache: ten thousand idle connections, closed after five seconds"
ulimit -n "$(ulimit -Hn)"
begin cache --idle-timeout 5s --max-clients 20000
"${ON_CLIENT[@]}" "$LOAD" idle --port $PORT --pid "$PID" --number 10000; finish
echo "# cache: churn"
begin cache; "${ON_CLIENT[@]}" "$LOAD" churn --port $PORT --pid "$PID" --number 1000000 --rate 50000 --seconds "${SOAK:-60}"; finish
