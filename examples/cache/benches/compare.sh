#!/usr/bin/env bash
# This cache beside Debian's redis-server, in turns: the measurements of ../README.md. The system
# places servers and clients on all cores; with --pin, the servers run on core 0 and the clients on core 1. On a machine
# that does nothing else:
#
#   examples/cache/benches/compare.sh [--rounds N] [--threads N] [--pin] [--scale N] [PART ...]
#
# | part | what it measures | time, about |
# |---|---|---|
# | `throughput` | redis-benchmark: GET and SET EX, pipelines of 1 and 16, 50 connections: requests/s, p50, p99, processor time a request | 1 min a round |
# | `expiry` | a thousand keys that are due at one instant, beside 0 to a million that are not: events, lateness | 3 min |
#
# Without a part, both of them. ROUNDS (default 5) is how often `throughput` runs both servers. THREADS is the cache's
# number of threads (by default, its own default). SCALE (default 1) divides the numbers of requests and keys:
# `--scale 20` tries both parts in a minute; its figures mean nothing. Each load is ended after PATIENCE (default 900)
# seconds.
set -euo pipefail
cd "$(dirname "$0")/../../.."
ROUNDS=5 THREADS= SCALE=1 PATIENCE=${PATIENCE:-900} PARTS=() ON_SERVER=() ON_CLIENT=()
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) ROUNDS=$2; shift ;;
    --threads) THREADS=$2; shift ;;
    --scale) SCALE=$2; shift ;;
    --pin) ON_SERVER=(taskset -c 0) ON_CLIENT=(taskset -c 1) ;;
    throughput | expiry) PARTS+=("$1") ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
[ ${#PARTS[@]} -gt 0 ] || PARTS=(throughput expiry)

cargo build --release --locked -p cache
EXPIRY=$(cargo bench --locked -p cache --bench expiry --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')

PID=
stop() { [ -z "$PID" ] || kill "$PID" 2>/dev/null || true; }
trap stop EXIT

start_redis() {
  PORT=16379 NAME=redis
  "${ON_SERVER[@]}" redis-server --port $PORT --bind 127.0.0.1 --save "" --appendonly no >/dev/null &
}
start_cache() {
  PORT=16380 NAME=cache
  "${ON_SERVER[@]}" "${CARGO_TARGET_DIR:-target}/release/cache" --listen 127.0.0.1:$PORT \
    ${THREADS:+--threads "$THREADS"} >/dev/null &
}
begin() { "start_$1"; PID=$!; until redis-cli -p $PORT ping >/dev/null 2>&1; do sleep 0.1; done; }
finish() { kill "$PID"; wait "$PID" 2>/dev/null || true; PID=; }
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }

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

part_expiry() {
  local keys server
  for keys in 0 10000 100000 1000000; do
    for server in redis cache; do
      begin $server
      echo "$server: $(timeout "$PATIENCE" "${ON_CLIENT[@]}" "$EXPIRY" --port $PORT --keys $((keys / SCALE)))"
      finish
    done
  done
}

echo "# $(git rev-parse --short HEAD), $(redis-server --version), $(nproc) cores, $(uname -r)"
for part in "${PARTS[@]}"; do
  echo "# $part"
  "part_$part"
done
