#!/usr/bin/env bash
# The binary carries the hardening that cmake/Toolchain.cmake asks for.
#
#   hardening_test.sh NOS
set -euo pipefail

nos=$1
fail() { echo "FAILED: $1"; exit 1; }
command -v readelf >/dev/null || { echo "skipped: no readelf here (package binutils)"; exit 77; }

header=$(readelf --wide --file-header "$nos")
grep -q 'Type: *DYN' <<<"$header" || fail "nos is no position-independent executable (PIE)"

dynamic=$(readelf --wide --dynamic "$nos")
grep -q 'BIND_NOW' <<<"$dynamic" || fail "symbols are bound lazily: no -z now, so RELRO is partial"

segments=$(readelf --wide --program-headers "$nos")
grep -q 'GNU_RELRO' <<<"$segments" || fail "no RELRO segment"
grep 'GNU_STACK' <<<"$segments" | grep -q 'RW ' || fail "no GNU_STACK header, or it allows execution"
if grep 'GNU_STACK' <<<"$segments" | grep -q 'RWE'; then fail "the stack is executable"; fi
if grep 'LOAD' <<<"$segments" | grep -q 'RWE'; then fail "a segment is writable and executable"; fi

symbols=$(readelf --wide --dyn-syms "$nos")
grep -q '__stack_chk_fail' <<<"$symbols" || fail "no function has a stack protector"
grep -qE '__(memcpy|memmove|read|vsnprintf|snprintf|poll|fdelt|strncpy)_chk' <<<"$symbols" ||
  fail "no call is checked by FORTIFY"

if grep -q 'X86-64' <<<"$header"; then
  # Every function that can be called indirectly begins with endbr64. main is one.
  main=$(objdump --disassemble=main --no-show-raw-insn "$nos")
  grep -q 'endbr64' <<<"$main" || fail "main does not begin with endbr64: no CET"
  readelf --wide --notes "$nos" | grep -q 'SHSTK' || fail "no mark for shadow stacks: no CET"
fi

# The checks above pass if one object is hardened. Every object of the product is compiled with every flag.
commands=$(dirname "$nos")/compile_commands.json
[ -f "$commands" ] || fail "$commands is missing"
flags=(-D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero -fPIE)
if grep -q 'X86-64' <<<"$header"; then flags+=(-fcf-protection=full); fi
for flag in "${flags[@]}"; do
  without=$(grep '"command":' "$commands" | grep -F '/src/' | grep -vE '_test\.cc|/testing/' | grep -vF -- " $flag " || true)
  [ -z "$without" ] || fail "compiled without $flag: $without"
done
echo "PIE, full RELRO, no executable stack, stack protector, FORTIFY, CET, zero-initialised automatics"
