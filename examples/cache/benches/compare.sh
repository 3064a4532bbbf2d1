#!/usr/bin/env bash
# This cache beside Debian's redis-server, in turns: the measurements of README.md beside this file. The system
# places servers and clients on all cores; with --pin, the servers run on core 0 and the clients on core 1. On a machine
# that does nothing else:
#
#   examples/cache/benches/compare.sh [--rounds N] [--threads N] [--pin] [--scale N] [PART ...]
#
# | part | what it measures | time, about |
# |---|---|---|
# | `throughput` | redis-benchmark: GET and SET EX, pipelines of 1 and 16, 50 connections: requests/s, p50, p99, processor time a request | 1 min a round |
# | `values` | redis-benchmark: SET and GET of values of 1, 16, 64 and 256 KiB, 50 connections: the same | 1 min a round |
# | `burst` | a million keys that expire within one second, under GETs at half of the capacity: lateness of events, GETs, memory | 2 min |
# | `expiry` | a thousand keys that are due at one instant, beside 0 to a million that are not: events, lateness | 3 min |
# | `memory` | bytes a key, of ten million keys that expire | 4 min |
# | `stuck` | GETs beside a thousand clients that stop in the middle of a command | 1 min |
# | `idle` | ten thousand idle connections, which are to be closed after five seconds | 1 min |
# | `forwarding` | processor time a GET of one thread, and of two threads on the same core, of whose GETs half are forwarded | 1 min |
# | `soak` | ten minutes of churn, with the memory every ten seconds | 10 min |
#
# Without a part, all of them. ROUNDS (default 5) is how often `throughput` and `values` run both servers. THREADS is the
# cache's number of threads (by default, its own default). SCALE (default 1) divides the numbers of
# requests, keys, connections and seconds: `--scale 20` tries all parts in a few minutes; its figures mean nothing.
# SOAK (default 600) is the soak's time in seconds. RATE, if it is set, is the GETs a second of `burst`; otherwise it is
# half of what the slower server reaches in a short run of redis-benchmark without pipelines. Each load is ended after
# PATIENCE (default 900) seconds.
set -euo pipefail
cd "$(dirname "$0")/../../.."
ROUNDS=5 THREADS= SCALE=1 SOAK=${SOAK:-600} PATIENCE=${PATIENCE:-900} RATE=${RATE:-} PARTS=() ON_SERVER=() ON_CLIENT=()
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) ROUNDS=$2; shift ;;
    --threads) THREADS=$2; shift ;;
    --scale) SCALE=$2; shift ;;
    --pin) ON_SERVER=(taskset -c 0) ON_CLIENT=(taskset -c 1) ;;
    throughput | values | burst | expiry | memory | stuck | idle | forwarding | soak) PARTS+=("$1") ;;
    *) sed -n '2,24s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
[ ${#PARTS[@]} -gt 0 ] || PARTS=(throughput values burst expiry memory stuck idle forwarding soak)

cargo build --release --locked -p cache
LOAD=$(cargo bench --locked -p cache --bench load --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
ulimit -n "$(ulimit -Hn)"

PID=
stop() { [ -z "$PID" ] || kill "$PID" 2>/dev/null || true; }
trap stop EXIT

start_redis() {
  PORT=16379 NAME=redis
  "${ON_SERVER[@]}" redis-server --port $PORT --bind 127.0.0.1 --save "" --appendonly no --maxclients 20000 >/dev/null &
}
start_cache() {
  PORT=16380 NAME=cache
  "${ON_SERVER[@]}" "${CARGO_TARGET_DIR:-target}/release/cache" --listen 127.0.0.1:$PORT \
    ${THREADS:+--threads "$THREADS"} --max-clients 20000 "$@" >/dev/null &
}
begin() { "start_$1" "${@:2}"; PID=$!; until redis-cli -p $PORT ping >/dev/null 2>&1; do sleep 0.1; done; }
finish() { kill "$PID"; wait "$PID" 2>/dev/null || true; PID=; }
load() { timeout "$PATIENCE" "${ON_CLIENT[@]}" "$LOAD" "$1" --port $PORT --pid "$PID" "${@:2}"; }
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }
on_each() { for server in redis cache; do echo "## $server"; begin $server; "$@"; finish; done; }

# PIPELINE REQUESTS COMMAND: a row of throughput.
benchmark() {
  local pipeline=$1 requests=$2 before after line; shift 2
  before=$(ticks "$PID")
  line=$(timeout "$PATIENCE" "${ON_CLIENT[@]}" \
    redis-benchmark -p $PORT -c 50 -P "$pipeline" -n "$requests" -r 100000 --csv "$@" | tail -1)
  after=$(ticks "$PID")
  echo "$line" | tr -d '"' | awk -F, -v name=$NAME -v p="$pipeline" -v what="$1" -v used=$((after - before)) -v n="$requests" \
    -v hz="$(getconf CLK_TCK)" '{ printf "%s %s %s %s %s %s %.3f\n", what, p, name, $(NF-6), $(NF-3), $(NF-1), used / hz * 1e6 / n }'
}

# The middle of the numbers of standard input.
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# ROW COLUMN: the median of a column of the rows that begin so.
column() { printf '%s\n' "${rows[@]}" | grep "^$1 " | cut -d' ' -f"$2" | median; }

# ROW COLUMN: of each round the cache's number divided by Redis's, and the median of these.
ratio() {
  paste <(printf '%s\n' "${rows[@]}" | grep "^$1 cache " | cut -d' ' -f"$2") \
    <(printf '%s\n' "${rows[@]}" | grep "^$1 redis " | cut -d' ' -f"$2") | awk '{ printf "%.3f\n", $1 / $2 }' | median
}

# A table of the rows, by WHAT they are of, which begins them.
table() {
  local what column
  echo "medians of $ROUNDS rounds, each for Redis / the cache"
  echo "| | requests/s | p50, ms | p99, ms | processor time a request, us | ratios of the rounds: requests/s, time |"
  echo "|---|---|---|---|---|---|"
  for what in "$@"; do
    printf '| %s |' "$what"
    for column in 4 5 6 7; do
      printf ' %s / %s |' "$(column "$what redis" $column)" "$(column "$what cache" $column)"
    done
    echo " $(ratio "$what" 4), $(ratio "$what" 7) |"
  done
  echo "every run:"
  printf '%s\n' "${rows[@]}"
}

# The servers of a round: neither is always the first.
in_turns() { [ $(($1 % 2)) = 0 ] && echo redis cache || echo cache redis; }

part_throughput() {
  local rows=() round pipeline server requests
  for ((round = 0; round < ROUNDS; round++)); do
    for pipeline in 1 16; do
      for server in $(in_turns $round); do
        begin $server
        requests=$(((pipeline == 1 ? 300000 : 3000000) / SCALE))
        rows+=("$(benchmark "$pipeline" "$requests" SET key:__rand_int__ xxx EX 60)")
        rows+=("$(benchmark "$pipeline" "$requests" GET key:__rand_int__)")
        finish
      done
    done
  done
  table "GET 1" "GET 16" "SET 1" "SET 16"
}

# The rows' second word is the length of the values in KiB.
part_values() {
  local rows=() round server requests kib test
  for ((round = 0; round < ROUNDS; round++)); do
    for kib in 1 16 64 256; do
      for server in $(in_turns $round); do
        begin $server
        requests=$(((kib > 64 ? 10000 : 40000) / SCALE))
        for test in SET GET; do
          rows+=("$(benchmark 1 "$requests" -t ${test,,} -d $((kib * 1024)) -r 100 | awk -v of="$test $kib" '{ $1 = of; $2 = ""; print }' | tr -s ' ')")
        done
        finish
      done
    done
  done
  table "SET 1" "GET 1" "SET 16" "GET 16" "SET 64" "GET 64" "SET 256" "GET 256"
}

# Half of what the slower server reaches.
half_capacity() {
  local server
  for server in redis cache; do
    begin $server
    benchmark 1 $((100000 / SCALE)) GET key:__rand_int__ | cut -d' ' -f4
    finish
  done | sort -n | awk 'NR == 1 { print int($1 / 2) }'
}

part_burst() {
  RATE=${RATE:-$(half_capacity)}
  echo "$RATE GETs a second"
  on_each load burst --number $((1000000 / SCALE)) --rate "$RATE"
}
part_expiry() {
  local number
  for number in 0 10000 100000 1000000; do on_each load expiry --number $((number / SCALE)); done
}
part_memory() { on_each load memory --number $((10000000 / SCALE)); }
part_stuck() { on_each load stuck --number $((1000 / SCALE)) --seconds $((8 / SCALE + 2)); }
part_idle() {
  begin cache --idle-timeout 5s
  load idle --number $((10000 / SCALE))
  finish
}
part_forwarding() {
  local THREADS pipeline ON_SERVER=(taskset -c 0) ON_CLIENT=(taskset -c 1)
  for THREADS in 1 2; do
    for pipeline in 1 16; do
      begin cache
      echo "$THREADS threads: $(benchmark $pipeline $(((pipeline == 1 ? 300000 : 3000000) / SCALE)) GET key:__rand_int__)"
      finish
    done
  done
}
part_soak() {
  begin cache
  load churn --number 1000000 --rate 50000 --seconds $((SOAK / SCALE))
  finish
}

echo "# $(git rev-parse --short HEAD), $(redis-server --version), $(nproc) cores, $(uname -r)"
for part in "${PARTS[@]}"; do
  echo "# $part"
  "part_$part"
done
