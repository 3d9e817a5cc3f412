#!/usr/bin/env bash
# Tests jobs/scaling.sh on CPU ranks, jobs/report on its results, the report's page in Chromium
# (light and dark), the trace of a run, and the messages if something is wrong.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=support.sh
. "$(dirname "$0")/support.sh"
trap 'rm -rf "$folder"' EXIT
/usr/bin/python3 -c 'import matplotlib, PIL' 2>/dev/null || skip "matplotlib or Pillow is not installed (apt-get install python3-matplotlib python3-pil)"

experiment=$folder/first
scale() { # OUT OPTIONS…
  "$root/jobs/scaling.sh" --models lenet --batches 16 --size 32 --ranks 1,2,4 --steps 24 --repeats 2 --threads 1 \
    --backend cpu --topology "$root/jobs/topologies/ethernet-10g.json" "${@:2}" "$1"
}
echo "== Ranks start on the cores near their GPU"
# Imitates two GPUs, in nvidia-smi and in the system's files: one near the first core of this
# machine, one near the last.
last=$(($(nproc) - 1))
mkdir -p "$folder/bin" "$folder/sys/bus/pci/devices/0000:1b:00.0" "$folder/sys/bus/pci/devices/0000:9a:00.0"
echo 0 >"$folder/sys/bus/pci/devices/0000:1b:00.0/local_cpulist"
echo "$last" >"$folder/sys/bus/pci/devices/0000:9a:00.0/local_cpulist"
cat >"$folder/bin/nvidia-smi" <<'SH'
#!/bin/sh
case "$*" in *"-i 1 "* | *"-i GPU-b "*) echo 00000000:9A:00.0 ;; *) echo 00000000:1B:00.0 ;; esac
SH
chmod +x "$folder/bin/nvidia-smi"
# shellcheck disable=SC2030,SC2034,SC2154,SC2016  # variables of launch.sh; the ranks expand their command
near() ( # prints the cores to which the ranks of a launch are bound
  export script=test PATH=$folder/bin:$PATH CONVOY_LAUNCHER=mpirun CONVOY_SYSFS=$folder/sys
  # shellcheck source=/dev/null
  . "$root/jobs/launch.sh"
  launch 2 sh -c 'echo "$OMPI_COMM_WORLD_LOCAL_RANK: $(taskset -pc $$ | sed "s/.*: //")"'
  "${launch[@]}" | sort
)
if taskset -c "$last" true 2>/dev/null; then
  check "one each" is "$(near)" "$(printf '0: 0\n1: %s' "$last")"
  for visible in 1,0 GPU-b,GPU-a; do
    check "as CUDA_VISIBLE_DEVICES=$visible has them" is "$(CUDA_VISIBLE_DEVICES=$visible near)" "$(printf '0: %s\n1: 0' "$last")"
  done
  echo "" >"$folder/sys/bus/pci/devices/0000:9a:00.0/local_cpulist"
  check "all cores where the system does not say" is "$(near)" "$(printf '0: 0\n1: %s' "$(taskset -pc $$ | sed 's/.*: //')")"
fi

"$CONVOY" data synth "$folder/figures.h5" --classes 7 --size 48 --train 64 --test 32 --seed 1 >/dev/null

echo "== Few ranks of a job fill its nodes one by one"
# shellcheck disable=SC2034  # of launch.sh
nodes_of() ( # SLURM_TASKS_PER_NODE RANKS…: prints the number of nodes for each number of ranks
  script=test SLURM_TASKS_PER_NODE=$1 SLURM_NTASKS=${SLURM_NTASKS-9}
  # shellcheck source=/dev/null
  . "$root/jobs/launch.sh"
  for ranks in "${@:2}"; do nodes_for "$ranks"; done | xargs
)
check "two on each of two nodes" is "$(nodes_of "2(x2)" 1 2 3 4)" "1 1 2 2"
check "three and one" is "$(nodes_of 3,1 1 3 4)" "1 1 2"
check "two twice, then one" is "$(nodes_of "2(x2),1" 4 5)" "2 3"
check "more than the job has: Slurm's own answer" is "$(nodes_of "2(x2)" 5)" ""
check "no job" is "$(nodes_of "" 4)" ""
check "no number of tasks: cores" is "$(SLURM_NTASKS='' nodes_of "128(x2)" 16)" ""

echo "== train.sbatch and signals, outside Slurm"
# train.sbatch calls scontrol just before it starts the ranks. A fake scontrol then sends it a
# signal.
mkdir "$folder/fake"
# shellcheck disable=SC2016  # expanded by the fake
printf '#!/bin/sh\n[ "$2" != config ] || kill -USR1 $PPID\n' >"$folder/fake/scontrol"
printf '#!/bin/sh\nexec sleep 5\n' >"$folder/fake/srun"
chmod +x "$folder/fake"/*
# shellcheck disable=SC2031  # near's PATH is its own
early() { env PATH="$folder/fake:$PATH" CONVOY_LAUNCHER=srun "$root/jobs/train.sbatch" --data synthetic --out "$folder/early" >"$folder/log" 2>&1; }
check "a signal before the ranks start reaches them" fails_with 138 early
# shellcheck disable=SC2016  # expanded by the fake
printf '#!/bin/sh\ntrap "" USR1\nkill -USR1 $PPID\nsleep 1\nexit 75\n' >"$folder/fake/srun"
printf '#!/bin/sh\n' >"$folder/fake/scontrol"
check "SIGUSR1 before the first checkpoint ends a run" fails_with 75 early
check "which says that it came too early" contains "$folder/log" "before the job's first checkpoint"
mkdir -p "$folder/early/checkpoint"
# shellcheck disable=SC2016  # expanded by the fake
printf '#!/bin/sh\ntrap "" USR1\nkill -USR1 $PPID\nsleep 1\n: >%s/early/checkpoint/step.h5\nexit 75\n' "$folder" >"$folder/fake/srun"
check "SIGUSR1 ends a run" fails_with 75 early
check "in one line" contains "$folder/log" "stopped with a checkpoint; the same line goes on"

echo "== Three rank counts, weak and strong, two repeats, with a prediction"
check "all runs end well" scale "$experiment" >"$folder/log"
contains "$folder/log" "12 runs done, 0 were there, 0 failed"
rm -rf "$experiment"/weak/*/ranks-2/repeat-1
check "a second call does what is missing" scale "$experiment" >"$folder/log"
contains "$folder/log" "1 runs done, 11 were there, 0 failed"
other_flags() { # FLAG VALUE: checks that the flag is refused in a line that names both values
  fails_with 1 scale "$experiment" "$@" >"$folder/log" 2>&1 && is "$(wc -l <"$folder/log")" 1 &&
    contains "$folder/log" "--steps 24" && contains "$folder/log" "$1 $2"
}
check "runs of another length are not taken for these" other_flags --steps 25
check "nor of another size" other_flags --size 48
check "nor with other threads" other_flags --threads 2
check "nor of other data" other_flags --data "$folder/figures.h5"
few() { scale "$folder/mixed" --models linear --ranks 1 --repeats 1 --scaling weak "$@" >"$folder/log"; }
check "each model and batch may have its own" few --steps 3 && few --batches 8 --steps 4
rm "$folder/mixed/weak/linear-b8-fp32/flags"
check "runs without their flags are not taken" fails_with 1 few --batches 8 --steps 4 2>/dev/null
rm -r "$folder/mixed"/weak/linear-b8-fp32/ranks-1 "$folder/mixed"/prediction/linear-b8-fp32/profile-*
check "flags without runs hold nobody up" few --batches 8 --steps 5
half=$(echo "$experiment"/strong/*/ranks-1/repeat-2/summary.json)
: >"$half"
check "an empty summary is no run" scale "$experiment" >"$folder/log" && test -s "$half"
check "one rank is predicted from its own profile" /usr/bin/python3 - "$experiment" <<'PY'
import json, pathlib, sys
rows = [json.loads(line) for line in next(pathlib.Path(sys.argv[1]).glob("prediction/*/prediction.jsonl")).open()]
assert {r["ranks"] for r in rows if r["scaling"] == "weak"} == {1, 2, 4, 8, 16}, rows
one = next(r for r in rows if r["ranks"] == 1 and r["scaling"] == "weak")
assert abs(one["efficiency"] - 1) < 1e-9 and one["exposed_comm_ms"] < 1e-9, one
assert all(r["efficiency"] <= 1 + 1e-9 for r in rows if r["scaling"] == "weak"), rows
PY

echo "== Data of a file"
"$root/jobs/scaling.sh" --models lenet --batches 4 --ranks 1 --steps 1 --repeats 1 --scaling weak --threads 1 --backend cpu \
  --data "$folder/figures.h5" --topology "$root/jobs/topologies/ethernet-10g.json" "$folder/of figures" >"$folder/log"
# The loss of a network that has learned nothing about 7 classes is ln 7.
check "the profile has the size and the classes of the data" grep -q '"loss":1\.9.*"size":48[,}]' "$folder/of figures"/prediction/*/profile-*.jsonl

echo "== More ranks than images"
"$root/jobs/scaling.sh" --models linear --batches 1 --size 32 --ranks 1,2 --steps 1 --repeats 1 --scaling strong --threads 1 \
  --backend cpu "$folder/one image" >"$folder/log" 2>"$folder/said"
check "they are left out" contains "$folder/log" "1 runs done, 0 were there, 0 failed"
check "and named" contains "$folder/said" "linear, 1 images over 2 ranks: left out"

echo "== As many threads a rank at every rank count"
"$root/jobs/scaling.sh" --models linear --batches 4 --size 32 --ranks 1,2 --steps 1 --repeats 1 --scaling weak --backend cpu \
  "$folder/threads" >"$folder/log"
each=$(($(nproc) / 2))
[ "$each" -gt 0 ] || each=1
check "it says how many" contains "$folder/log" "Threads of a rank at every rank count: $each"
threads_of() { # RANKS: prints the threads that the run's configuration names
  grep -o '[0-9]* threads\{0,1\} a rank' "$folder/threads/weak/linear-b4-fp32/ranks-$1/repeat-1/log"
}
check "one rank does not take all cores" is "$(threads_of 1)" "$(threads_of 2)"

echo "== Stopped, as by ^C"
gone() { ! ranks_of "$1" >/dev/null; }
for signal in INT:130 TERM:143; do
  # Start it in a session of its own. SIGINT, which background jobs of a shell ignore, must end it.
  env --default-signal=INT setsid "$root/jobs/scaling.sh" --models lenet --batches 16 --size 32 --ranks 1 --steps 100000 --repeats 2 \
    --threads 1 --backend cpu "$folder/$signal" >"$folder/log" 2>"$folder/error" &
  job=$!
  await 30 logged "$folder/$signal/weak/lenet-b16-fp32/ranks-1/repeat-1.part" 1
  check "a rank trains" ranks_of "$folder/$signal/weak/lenet-b16-fp32/ranks-1/repeat-1.part" >/dev/null
  kill -s "${signal%:*}" -- "-$job"
  await 20 test -s "$folder/error" || kill -KILL -- "-$job"
  check "SIG${signal%:*} ends it with one line" fails_with "${signal#*:}" wait "$job"
  check "which says so" is "$(cat "$folder/error")" "scaling.sh: stopped; the same line goes on"
  check "no rank is left" await 20 gone "$folder/$signal/weak/lenet-b16-fp32/ranks-1/repeat-1.part"
done

echo "== What bench prints is what simulate reads"
bench() { OMPI_MCA_mpi_yield_when_idle=1 timeout 120 mpirun -np "$1" --bind-to none --oversubscribe "$CONVOY" bench "${@:2}" --json; }
bench 2 collectives --operations all-reduce --from 8 --factor 64 --to 2MiB --milliseconds 1 >"$folder/collectives.jsonl"
bench 1 step --model lenet --batch 16 --size 32 --steps 3 --threads 1 --layers >"$folder/profile.jsonl"
check "both files make a prediction" "$CONVOY" simulate --model lenet --topology "$root/jobs/topologies/ethernet-10g.json" \
  --profile "$folder/profile.jsonl" --collectives "$folder/collectives.jsonl" --ranks 1,2 --scaling weak --json >"$folder/predicted.jsonl"
bench 1 step --model lenet --batch 16 --size 32 --steps 9 --threads 1 >"$folder/longer.jsonl"
bench 2 step --model lenet --batch 16 --size 32 --steps 3 --threads 1 >"$folder/two.jsonl"
check "of measured times, of steps that are all alike, and a step of two ranks says what it waited" /usr/bin/python3 - "$folder" <<'PY'
import json, sys
read = lambda name: [json.loads(line) for line in open(f"{sys.argv[1]}/{name}.jsonl")]
one, two = read("predicted")
assert one["op_times"] == two["op_times"] == "measured" and two["network"] == "measured", two
profile, (longer,) = read("profile")[0], read("longer")
assert profile["ms_min"] <= profile["ms_mean"] <= profile["ms_max"] and abs(one["step_ms"] - profile["ms_mean"]) < 1e-6, (one, profile)
assert profile["loss"] == longer["loss"], (profile, longer)  # a profile changes no parameters
# The gradients have 248 kB, which lies between the measured sizes 32 KiB and 2 MiB. On a busy
# machine either of these sizes may have taken longer.
assert two["communication_ms"] >= min(r["microseconds"] for r in read("collectives") if r["bytes"] >= 1 << 15) * 1e-3, two
step, = read("two")
assert step["ranks"] == 2 and 0 < step["exposed_comm_ms"] < step["ms_max"] and step["limited_by"], step
PY

echo "== The report"
check "is made" "$root/jobs/report" "$experiment"
cp -r "$experiment" "$folder/second"
# Pretend that these are results of another, faster machine, so that both show in the plots.
/usr/bin/python3 - "$folder/second" <<'PY'
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("summary.json"):
    summary = json.loads(path.read_text())
    summary["images_per_second"] *= 1.5
    path.write_text(json.dumps(summary))
PY
check "and compares two experiments" "$root/jobs/report" "$experiment" "$folder/second" --out "$folder/both"
cp -r "$experiment" "$folder/single"
rm -rf "$folder"/single/report "$folder"/single/*/*/ranks-*/repeat-2
# The spread (error bar) of a single run is 0. 100 / 44 * 44 is slightly above 100 in floating
# point, but this rounding must not make the spread negative.
/usr/bin/python3 - "$folder/single" <<'PY'
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("summary.json"):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"images_per_second": 44}))
PY
check "and draws single runs" "$root/jobs/report" "$folder/single"
check "is whole: every plot is in the page, every run in the tables" /usr/bin/python3 - "$experiment/report" "$folder/both" <<'PY'
import base64, csv, io, pathlib, re, sys
from PIL import Image
for folder, experiments in zip(map(pathlib.Path, sys.argv[1:]), (1, 2)):
    page = (folder / "index.html").read_text()
    assert not re.search(r'(?:src|href|srcset)="(?!data:)', page), "the page needs other files"
    images = re.findall(r"data:image/png;base64,([^\"]+)", page)
    assert len(images) == 2 * 2 * 4, len(images)  # themes, scalings, plots
    for data in images:
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        assert image.width >= 600 and len(image.convert("RGB").getcolors(1 << 24)) > 20, image.size
    rows = list(csv.DictReader((folder / "scaling.csv").open()))
    assert len(rows) == 6 * experiments, rows
    for row in rows:
        assert float(row["images_per_second"]) > 0 and row["runs"] == "2", row
        parts = sum(float(row[k]) for k in ("compute_ms", "exposed_comm_ms", "data_wait_ms"))
        assert 0.2 < parts / float(row["step_ms"]) < 5, row
        assert row["predicted_images_per_second"], row
    assert (folder / "scaling.md").read_text().count("\n") == 2 + len(rows)
    assert page.count("<details>") == len(rows)
PY

echo "== The page in a browser"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "skipped: no Chromium here; the plots were checked as files"
else
  for theme in light dark; do
    dark=(); [ "$theme" = light ] || dark=(--blink-settings=preferredColorScheme=0)
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/browser" \
      --hide-scrollbars --window-size=1240,1800 --virtual-time-budget=3000 "${dark[@]}" \
      --screenshot="$folder/$theme.png" "file://$folder/both/index.html" >"$folder/browser.log" 2>&1 || true
    [ -z "${SCREENSHOTS:-}" ] || cp "$folder/$theme.png" "$SCREENSHOTS/"
    check "a screenshot, $theme" test -s "$folder/$theme.png"
  done
  check "both show the plots, legibly" /usr/bin/python3 - "$folder" <<'PY'
import sys
from PIL import Image
def luminance(pixel): return 0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2]
series = {"light": [(0x1f, 0x6f, 0xeb), (0xd9, 0x48, 0x0f)], "dark": [(0x6c, 0xb0, 0xff), (0xff, 0x9a, 0x5c)]}
for theme, colors in series.items():
    image = Image.open(f"{sys.argv[1]}/{theme}.png").convert("RGB")
    pixels = list(image.getdata())
    ground = image.getpixel((3, 3))
    assert (luminance(ground) > 200) == (theme == "light"), (theme, ground)
    for color in colors:  # the lines of both experiments
        near = sum(max(abs(a - b) for a, b in zip(pixel, color)) < 24 for pixel in pixels)
        assert near > 500, (theme, color, near)
    # Counts pixels that differ from the background as text does. Each of the four plots has a
    # heading, labels and ticks.
    ink = sum(abs(luminance(pixel) - luminance(ground)) > 150 for pixel in pixels)
    assert ink > 4000, (theme, ink)
    assert image.size == (1240, 1800), image.size
PY
fi

echo "== The trace of a run"
OMPI_MCA_mpi_yield_when_idle=1 mpirun -np 2 --bind-to none --oversubscribe "$CONVOY" train --model lenet --data synthetic --size 32 \
  --global-batch 16 --steps 20 --threads 1 --limit-test 64 --out "$folder/traced" --trace "$folder/trace.json" >"$folder/traced.log" 2>&1
check "the run says what limited it" grep -qE '^limited by [a-z]+: [0-9]+ % of a step of .*slowest: rank [01] on ' "$folder/traced.log"
check "both ranks on one clock" /usr/bin/python3 - "$folder/trace.json" <<'PY'
import collections, json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
steps = {(e["name"], e["pid"]): e for e in events if e.get("cat") == "step"}
assert len(steps) == 6 and {pid for _, pid in steps} == {0, 1}, list(steps)
# Both ranks end a step with a sum over the ranks. So their steps must overlap in the trace's time.
for name in {name for name, _ in steps}:
    a, b = steps[name, 0], steps[name, 1]
    assert max(a["ts"], b["ts"]) < min(a["ts"] + a["dur"], b["ts"] + b["dur"]), (a, b)
for pid in (0, 1):
    mine = [e for e in events if e["pid"] == pid]
    inside = [e for e in mine if e["ph"] == "X" and e["cat"] != "step"]
    assert {"conv2d_forward", "optimizer_update", "wait_buckets", "loader"} <= {e["cat"] for e in inside}
    for e in inside:  # every event must lie in a step
        assert any(s["ts"] - 1 <= e["ts"] and e["ts"] + e["dur"] <= s["ts"] + s["dur"] + 1
                   for (_, p), s in steps.items() if p == pid), e
    ends = collections.Counter(e["ph"] for e in mine if e.get("cat") == "bucket")
    assert ends["b"] == ends["e"] > 0, ends
    opened = {e["id"]: e["ts"] for e in mine if e["ph"] == "b"}
    assert all(e["ts"] >= opened[e["id"]] for e in mine if e["ph"] == "e")
PY

echo "== What a user reads"
# says STATUS WORDS COMMAND…: checks that the command ends with this status and prints one line with
# these words on standard error.
says() {
  local expected=$1 words=$2 status=0
  shift 2
  "$@" >/dev/null 2>"$folder/error" || status=$?
  is "$status" "$expected" && is "$(wc -l <"$folder/error")" 1 && contains "$folder/error" "$words"
}
scaling=$root/jobs/scaling.sh
check "no folder" says 2 "folder" "$scaling"
check "an unknown option" says 2 "--model;" "$scaling" --model lenet "$folder/x"
check "not a number" says 2 "--ranks" "$scaling" --ranks 1,b "$folder/x"
for flag in --ranks --batches; do check "$flag 0" says 2 "$flag: found '0'" "$scaling" "$flag" 0 "$folder/x"; done
check "no names" says 2 "--models: found ','" "$scaling" --models , "$folder/x"
check "more ranks than the job has" says 1 "--ranks 1,8: this job has 4" env SLURM_NTASKS=4 "$scaling" --backend cpu --ranks 1,8 "$folder/x"
check "no topology in the file" says 1 "README.md: not JSON" "$scaling" --backend cpu --ranks 1 --topology "$root/README.md" "$folder/x"
mkdir "$folder/full"
touch "$folder/full/weak"
check "no folder for a run" says 1 "resnet50-b256-fp32: cannot be made" "$scaling" --backend cpu --ranks 1 --scaling weak "$folder/full"
check "no data" says 1 "none.h5" "$scaling" --data "$folder/none.h5" "$folder/x"
check "not a data set" says 1 "--data $root/README.md: " "$scaling" --data "$root/README.md" --backend cpu "$folder/x"
check "no topology" says 1 "none.json" "$scaling" --topology "$folder/none.json" "$folder/x"
# Make a copy of Convoy's folder, in which the test can pretend that programs are built.
tree=$folder/tree
mkdir -p "$tree/build/cpu"
cp -r "$root/jobs" "$tree"
built() { env -u CONVOY "$tree/jobs/scaling.sh" --models lenet --backend cpu --ranks 1 --repeats 1 --scaling weak "$folder/x"; }
check "nothing built" says 1 "no program under $tree/build" built
check "nothing built, for a job" says 1 "no program under $tree/build" env -u CONVOY "$tree/jobs/train.sbatch" --data synthetic --out x
printf '#!/bin/sh\necho "convoy: this is cpu" >&2\nexit 1\n' >"$tree/build/cpu/convoy"
chmod +x "$tree/build/cpu/convoy"
check "the one program that is built" says 1 "this is cpu" built
check "no program" says 1 "$folder/none" env CONVOY="$folder/none" "$scaling" "$folder/x"
[ -n "$(command -v nvidia-smi)" ] || check "no GPU" says 1 "no GPU" env CUDA_VISIBLE_DEVICES= "$scaling" --backend cuda --ranks 1 "$folder/x"
check "no module" says 1 "module" env CONVOY_MODULES=convoy-none "$scaling" "$folder/x"
check "an unknown model" says 1 "did you mean 'lenet'" "$scaling" --models lenett --backend cpu --ranks 1 --repeats 1 --scaling weak "$folder/x"
check "members train" "$CONVOY" train --model lenet --data synthetic --size 28 --limit-train 32 --limit-test 8 --global-batch 16 \
  --epochs 2 --log-every 1 --threads 1 --members "learning-rate=0.001,0.1" --out "$folder/members"
check "and are drawn" "$root/jobs/report" "$folder/members"
check "on a page with every plot and every member" /usr/bin/python3 - "$folder/members/report/index.html" <<'PY'
import re, sys
page = open(sys.argv[1]).read()
assert page.count("<picture>") == 3, page.count("<picture>")
assert "2 members: 2 finished." in page
assert len(re.findall("<tr>", page)) == 3
PY
echo "member,status" >"$folder/browser/members.csv"
check "a table without members" says 1 "members.csv: expected a row for every member" "$root/jobs/report" "$folder/browser"
rm "$folder/browser/members.csv"
check "a folder without results" says 1 "no results" "$root/jobs/report" "$folder/browser"
check "measured and predicted efficiency start at the same ranks" /usr/bin/python3 - "$root/jobs/report" <<'PY'
import sys
code = {"__name__": "report"}
exec(open(sys.argv[1]).read(), code)
point = code["Point"](2)
point.summaries = [{"images_per_second": 9}]
predicted = {n: {"efficiency": e} for n, e in ((1, 1), (2, 0.9), (4, 0.45))}
figure = code["efficiencies"](code["THEMES"]["light"], "", [("a", {2: point}, predicted)], [1, 2, 4])
lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].lines}
assert [round(y) for y in lines["a, predicted"]] == [111, 100, 50], lines
PY
broken() { # FILE SED [FOLDER]: checks that the report refuses FILE; the sed command SED damages summary.json
  local run=$folder/broken/weak/m/${3:-ranks-1}/repeat-1
  rm -rf "$folder/broken"
  mkdir -p "$run" "$folder/broken/prediction/m"
  echo '{}' >"$run/manifest.json"
  echo '{"images_per_second": 9, "step_ms_median": 1, "peak_device_bytes": 1, "ranks": 1, "rank_times": [{"compute_ms": 1, "exposed_comm_ms": 0, "data_wait_ms": 0}]}' |
    sed "$2" >"$run/summary.json"
  [ "$1" = summary.json ] || echo '{"scaling": "weak", "ra' >"$folder/broken/prediction/m/$1"
  says 1 "$1: " "$root/jobs/report" "$folder/broken"
}
for text in 's/.*/null/' 's/9/null/' 's/9/0/' 's/\[.*\]/[{}]/'; do check "a broken summary, $text" broken summary.json "$text"; done
check "no number of ranks" broken summary.json '' ranks-x
check "half a prediction" broken prediction.jsonl ''
check "a folder that is not there" says 1 "no such folder" "$root/jobs/report" "$folder/none"
check "a model without a topology" says 2 "--topology" "$CONVOY" simulate --model lenet --batch 4
check "neither a graph nor a model" says 2 "--graph" "$CONVOY" simulate
for script in scaling.sh train.sbatch report; do check "$script --help" "$root/jobs/$script" --help >/dev/null; done
if command -v shellcheck >/dev/null; then
  # Run shellcheck in this folder, so that it finds sourced files.
  shellchecked() { (cd "$root" && shellcheck -x jobs/*.sh jobs/*.sbatch tests/jobs/*.sh); }
  check "shellcheck finds nothing" shellchecked
fi
finish
