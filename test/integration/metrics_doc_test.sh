#!/usr/bin/env bash
# docs/metrics.md lists exactly the existing metrics.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck disable=SC2016
named() { grep -oE '`(nos|process|scheduler|DCGM)_[A-Za-z_]+`' docs/metrics.md | tr -d '`' | sort -u; }
made() {
  {
    grep -rhozE 'MetricFamily k[A-Za-z]+\{[^"]*"[a-z_]+"' src --include='*.h' --include='*.cc' \
      --exclude='*_test.cc'
    grep -hozE '\{kGauge,[[:space:]]*"[A-Z_]+"' src/telemetryreporter/gpu_metrics.cc
  } | tr '\0' '\n' | grep -oE '"[A-Za-z_]+"' | tr -d '"' | sort -u
}
[ "$(made | wc -l)" -gt 20 ] || { echo "found only: $(made)"; exit 1; }
diff <(named) <(made) && echo ok
