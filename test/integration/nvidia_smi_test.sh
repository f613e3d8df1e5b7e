#!/usr/bin/env bash
# nos agent --once --print agrees with nvidia-smi about the GPUs of this machine, if it has any.
#
#   nvidia_smi_test.sh NOS
set -u
nos=$1
skip() { echo "skipped: $1"; exit 77; }
command -v nvidia-smi >/dev/null || skip "there is no nvidia-smi here"
command -v python3 >/dev/null || skip "comparing needs python3"
nvidia-smi -L >/dev/null 2>&1 || skip "nvidia-smi finds no driver: $(nvidia-smi -L 2>&1 | head -1)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fields=index,uuid,name,memory.total,memory.used,power.draw,enforced.power.limit,temperature.gpu
fields+=,utilization.gpu,clocks.max.sm,clocks.max.mem
ask() { nvidia-smi --query-gpu=$fields --format=csv,noheader,nounits >"$work/$1" || exit 1; }
ask before
"$nos" agent --once --print -o json >"$work/nos.json" || exit 1
ask after
python3 - "$work" <<'END'
import csv, json, sys

# Our name, the column, and the tolerance of a changing value against the readings before and after.
COMPARED = [("memory_total", 3, 1), ("memory_used", 4, 64), ("power", 5, 60),
            ("power_limit", 6, 0.5), ("temperature", 7, 3), ("utilization", 8, 10)]
BOUNDED = [("sm_clock", 9), ("memory_clock", 10)]  # these change with every reading
rows = [list(csv.reader(open(f"{sys.argv[1]}/{name}"), skipinitialspace=True))
        for name in ("before", "after")]
told = json.load(open(f"{sys.argv[1]}/nos.json"))
gpus = {gpu["index"]: gpu for gpu in told["gpus"]}
readings = {gpu["index"]: gpu for gpu in told["readings"]["gpus"]}
assert len(gpus) == len(rows[0]), f"{len(gpus)} GPUs, nvidia-smi says {len(rows[0])}"
compared = 0
for before, after in zip(*rows):
    index = int(before[0])
    assert gpus[index]["uuid"] == before[1], (gpus[index]["uuid"], before[1])
    assert gpus[index]["product"] == before[2], (gpus[index]["product"], before[2])
    metrics = readings[index]["metrics"]
    for name, column, tolerance in COMPARED:
        try:
            seen = [float(before[column]), float(after[column])]
        except ValueError:  # "[N/A]"
            continue
        ours = metrics.get(name)
        assert ours is not None, f"GPU {index}: no {name}: {readings[index]['unmeasured'].get(name)}"
        ours *= 100 if name == "utilization" else 1
        assert min(seen) - tolerance <= ours <= max(seen) + tolerance, \
            f"GPU {index}: {name} is {ours}, nvidia-smi says {seen}"
        print(f"GPU {index}: {name} {ours} (nvidia-smi: {seen})")
        compared += 1
    for name, column in BOUNDED:
        if before[column].isdigit():
            assert 0 < metrics[name] <= float(before[column]), f"GPU {index}: {name} {metrics[name]}"
assert compared > 0, "nothing was compared"
END
