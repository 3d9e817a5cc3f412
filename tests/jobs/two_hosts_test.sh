#!/usr/bin/env bash
# Tests training on two hosts, which are two network namespaces with their own addresses and host
# names, joined by a virtual link. The losses must be those of one host. If the link goes down
# during a step, the job must end with the watchdog's message.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=support.sh
. "$(dirname "$0")/support.sh"

here=convoy-$$-a there=convoy-$$-b
cleanup() {
  local namespace processes
  for namespace in "$here" "$there"; do
    mapfile -t processes < <(ip netns pids "$namespace" 2>/dev/null)
    [ "${#processes[@]}" -eq 0 ] || kill -KILL "${processes[@]}" 2>/dev/null || true
    ip netns delete "$namespace" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap cleanup EXIT
for program in ip unshare mpirun; do command -v "$program" >/dev/null || skip "$program is not installed"; done
if ! { ip netns add "$here" && ip netns add "$there" && unshare --uts true; } 2>"$folder/why"; then
  skip "no network namespaces here: $(head -n 1 "$folder/why")"
fi
ip -n "$here" link add joint type veth peer name joint netns "$there" 2>"$folder/why" ||
  skip "no virtual links here: $(head -n 1 "$folder/why")"
for side in "$here 10.231.7.1" "$there 10.231.7.2"; do
  read -r namespace address <<<"$side"
  ip -n "$namespace" address add "$address/24" dev joint
  ip -n "$namespace" link set lo up
  ip -n "$namespace" link set joint up
  # mpirun's connections must give up after seconds without an answer, not after 15 minutes.
  ip netns exec "$namespace" sh -c 'echo 4 >/proc/sys/net/ipv4/tcp_retries2'
done

# mpirun calls this instead of ssh, with the arguments HOST COMMAND…
cat >"$folder/agent" <<EOT
#!/bin/sh
shift
exec ip netns exec $there unshare --uts sh -c "hostname host-b; \$*"
EOT
chmod +x "$folder/agent"

data=$folder/figures.h5
"$CONVOY" data synth "$data" --classes 10 --size 32 --train 600 --test 60 --seed 3 >/dev/null
flags=(train --model lenet --data "$data" --global-batch 32 --steps 60 --seed 1 --flip --threads 1 --log-every 1
  --checkpoint-every-steps 7)
over_two_hosts() { # FLAGS…
  ip netns exec "$here" unshare --uts sh -c 'hostname host-a; exec "$@"' sh \
    mpirun --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include joint --mca btl_tcp_if_include joint \
    --mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3 \
    --host 10.231.7.1:1,10.231.7.2:1 -np 2 --bind-to none --mca orte_execute_quiet 1 "$CONVOY" "${flags[@]}" "$@"
}
losses() { sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$1/metrics.jsonl"; }

echo "== The same losses as on one host"
mpirun -np 2 --bind-to none --oversubscribe "$CONVOY" "${flags[@]}" --out "$folder/one" >"$folder/one.log" 2>&1
check "the job ends well" fails_with 0 timeout 100 "$BASH" -c "$(declare -f over_two_hosts); $(declare -p flags here folder CONVOY);
  over_two_hosts --out '$folder/two'" >"$folder/two.log" 2>&1
check "rank 1 is on the second host" grep -qE "rank 1  +host-b" "$folder/two.log"
check "60 losses" is "$(losses "$folder/two" | wc -l)" 60
check "the losses are those of one host" diff <(losses "$folder/one") <(losses "$folder/two")
check "and so are the parameters" is "$(sha_of "$folder/two")" "$(sha_of "$folder/one")"

echo "== The link goes down in mid-step"
over_two_hosts --timeout 4 --out "$folder/cut" >"$folder/cut.log" 2>&1 &
job=$!
await 60 logged "$folder/cut" 12
ip -n "$here" link set joint down
cut_at=$SECONDS
await 30 grep -q '^convoy: ' "$folder/cut.log"
check "the message comes within the timeout and a few seconds" at_most $((SECONDS - cut_at)) 12
check "it names the operation and the other host" grep -qE '^convoy: .*(no answer from|died).*rank 1 .*host-b' "$folder/cut.log"
gone() { ! pgrep -f -- "^$CONVOY train .*--out $folder/cut" >/dev/null; }
check "all ranks end, on both hosts" await 20 gone
mpirun_gone() { ! kill -0 "$job" 2>/dev/null; }
check "mpirun ends too" await 40 mpirun_gone
check "the checkpoint is whole" whole_checkpoint "$folder/cut" "$data"
grep '^convoy: ' "$folder/cut.log"
finish
