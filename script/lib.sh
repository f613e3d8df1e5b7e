# Shared by the scripts in this folder; source it, do not run it. Answers --help with the comment
# at the top of the script.
# shellcheck shell=bash
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

case ${1:-} in
  -h | --help)
    sed -n -e '1d' -e '/^# shellcheck /d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# configure_and_build PRESET [TARGET...]: whole output on failure.
configure_and_build() {
  local preset=$1 log targets=()
  shift
  [ $# -gt 0 ] && targets=(--target "$@")
  log=build/$preset.log
  mkdir -p build
  script/web || {
    [ $? -eq 3 ] || die "the dashboard does not build (see above)"
    say "nos is built without its dashboard (see above)"
  }
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configuring the $preset build"
    cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; die "configuring failed (see above)"; }
  fi
  say "building $preset (the first time takes some minutes)"
  if [ -t 2 ]; then
    cmake --build --preset "$preset" "${targets[@]}" >&2 || die "the build failed (see above)"
  else
    cmake --build --preset "$preset" "${targets[@]}" >"$log" 2>&1 ||
      { grep -vE '^\[[0-9]+/[0-9]+\]' "$log" >&2; die "the build failed (see above)"; }
  fi
}
