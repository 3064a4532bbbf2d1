#!/usr/bin/env bash
# Compares a hyper server on tokio's timer and on shardwheel's, under Debian's `wrk`, in turns.
#
#   compat/benches/wrk.sh [ROUNDS]     3 rounds by default
#
# SECONDS_EACH (default 10) is the time of each run, CONNECTIONS (default 256) and THREADS (default 1) are wrk's.
# Everything is on loopback. A server ends with its run, or by itself if this script is killed.
set -euo pipefail
cd "$(dirname "$0")/../.."

ROUNDS=${1:-3}
SECONDS_EACH=${SECONDS_EACH:-10}
CONNECTIONS=${CONNECTIONS:-256}
THREADS=${THREADS:-1}
TICKS=$(getconf CLK_TCK)
WORK=$(mktemp -d)
SERVER=

stop_server() {
  [ -z "$SERVER" ] || { kill "$SERVER" 2>/dev/null; wait "$SERVER" 2>/dev/null; } || true
  SERVER=
}
trap 'stop_server; rm -rf "$WORK"' EXIT

command -v wrk >/dev/null || { echo "wrk is missing: apt-get install wrk" >&2; exit 1; }
cargo build --quiet --release --locked -p shardwheel-compat --features hyper --example hyper_server

start_server() {
  local tries
  # Emptied here: the server starts in the background.
  : >"$WORK/address"
  "${CARGO_TARGET_DIR:-target}/release/examples/hyper_server" --timer "$1" --seconds $((SECONDS_EACH + 60)) >"$WORK/address" &
  SERVER=$!
  for tries in {1..100}; do
    [ ! -s "$WORK/address" ] || return 0
    sleep 0.05
  done
  echo "the server on the timer of $1 did not start" >&2
  exit 1
}

# The processor time of the server so far, in clock ticks: user and system.
server_ticks() { awk '{ print $14 + $15 }' "/proc/$SERVER/stat"; }

# wrk's requests per second and its 99th percentile in microseconds.
figures() {
  awk '
    $1 == "99%" { unit = $2 ~ /us$/ ? 1 : $2 ~ /ms$/ ? 1000 : 1000000; p99 = $2 * unit }
    $1 == "Requests/sec:" { rate = $2 }
    $2 == "requests" && $3 == "in" { requests = $1 }
    /Socket errors|Non-2xx/ { print > "/dev/stderr" }
    END { print rate, p99, requests }'
}

# One line: the timer, requests per second, p99 in microseconds, processor seconds, the same in microseconds a request.
run() {
  local before after
  start_server "$1"
  wrk --threads "$THREADS" --connections "$CONNECTIONS" --duration 1s "$(cat "$WORK/address")" >/dev/null
  before=$(server_ticks)
  timeout $((SECONDS_EACH + 30)) \
    wrk --threads "$THREADS" --connections "$CONNECTIONS" --duration "${SECONDS_EACH}s" --latency "$(cat "$WORK/address")" \
    >"$WORK/wrk"
  after=$(server_ticks)
  stop_server
  figures <"$WORK/wrk" | awk -v timer="$1" -v ticks=$((after - before)) -v per_second="$TICKS" '
    { cpu = ticks / per_second; printf "%-10s %12.0f %8.0f %8.2f %14.2f\n", timer, $1, $2, cpu, cpu * 1e6 / $3 }'
}

# The median of a column for a timer.
median() {
  awk -v timer="$1" -v column="$2" '$1 == timer { print $column }' "$WORK/all" | sort -n |
    awk '{ value[NR] = $1 } END { print (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

printf '%-10s %12s %8s %8s %14s\n' timer requests/s 'p99 us' 'cpu s' 'cpu us/request'
for ((round = 1; round <= ROUNDS; round++)); do
  # Neither timer is always the first.
  order=(tokio shardwheel)
  [ $((round % 2)) = 1 ] || order=(shardwheel tokio)
  for timer in "${order[@]}"; do run "$timer" | tee -a "$WORK/all"; done
done
# The median of the rounds' ratios: a column of shardwheel over that of tokio. What slows the machine for seconds
# slows both runs of a round.
ratio() {
  awk -v column="$1" '{ value[$1] = $column } NR % 2 == 0 { print value["shardwheel"] / value["tokio"] }' "$WORK/all" |
    sort -n | awk '{ value[NR] = $1 } END { print (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

echo "medians:"
for timer in tokio shardwheel; do
  printf '%-10s %12.0f %8.0f %8.2f %14.2f\n' "$timer" "$(median "$timer" 2)" "$(median "$timer" 3)" "$(median "$timer" 4)" "$(median "$timer" 5)"
done
printf '%-10s %12.3f %8.3f %8.3f %14.3f\n' ratio "$(ratio 2)" "$(ratio 3)" "$(ratio 4)" "$(ratio 5)"
