#!/bin/sh
# Calls and parameter server between two hosts, the first the server:
#
#	deploy/two-hosts.sh HOST HOST [flags of bebench rpc and ps, as -d mlx5_0]
#
# Hosts are names for ssh; "local" is this machine. BEBENCH is the program, which is copied
# to the hosts; ADDR is the server's address if it is not its name.
set -eu
if [ $# -lt 2 ]; then
	echo "usage: $0 SERVER CLIENT [flags]" >&2
	exit 1
fi
server=$1 client=$2
shift 2
program=${BEBENCH:-bin/bebench}
addr=${ADDR:-$server}
if [ "$addr" = local ]; then
	addr=127.0.0.1
fi

# on HOST ARGS... runs bebench on a host.
on() {
	host=$1
	shift
	if [ "$host" = local ]; then
		"$program" "$@"
	else
		ssh "$host" ./bebench "$@"
	fi
}

for host in "$server" "$client"; do
	if [ "$host" != local ]; then
		scp -q "$program" "$host:bebench"
	fi
	if [ -z "${SKIP_DOCTOR:-}" ]; then
		on "$host" doctor || echo "$host: see above; going on" >&2
	fi
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for job in rpc ps; do
	on "$server" "$job" -1 "$@" >"$log" 2>&1 &
	pid=$!
	until grep -q 'waiting for a client' "$log"; do
		if ! kill -0 "$pid" 2>/dev/null; then
			cat "$log" >&2
			exit 2
		fi
		sleep 0.1
	done
	status=0
	on "$client" "$job" "$@" "$addr" || status=$?
	if [ "$status" -ne 0 ]; then
		kill "$pid" 2>/dev/null || true
		cat "$log" >&2
		exit "$status"
	fi
	wait "$pid"
done
