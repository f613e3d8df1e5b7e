#!/usr/bin/env bash
# The image of a release for amd64 and arm64: pushed to a registry on loopback, and pulled back for arm64. All code in it
# is for arm64, its program starts there in an emulator as the pods' user, and its bill of materials names arm64's
# packages.
#
#   release_arm64_test.sh SCRIPT NOS NOS_OF_ARM64
#
# Needs root (chroot), Debian's archive, its qemu-user-static and binutils-aarch64-linux-gnu, and Go for crane and helm;
# skips without.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")") amd64=$(readlink -f "$2") arm64=$(readlink -f "$3")
root=$here/../..
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "not root, which chroot needs"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "not on amd64, where arm64 is cross-compiled"
for each in apt-get dpkg-deb node jq readelf qemu-aarch64-static aarch64-linux-gnu-strip; do
  command -v "$each" >/dev/null || skip "no $each here"
done
crane=$("$controlplane" binary crane) || { [ $? -eq 77 ] && skip "no crane"; fail "no crane"; }
work=$(mktemp -d)
chmod 755 "$work"
registry_pid=
finish() {
  local code=$?
  [ -z "$registry_pid" ] || { kill "$registry_pid" && wait "$registry_pid"; } 2>/dev/null
  [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || tail -n 15 "$work"/*.log
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
"$root/deploy/image/unpack" arm64 "$work/reach" 'ca-certificates!' >"$work/reach.log" 2>&1 ||
  skip "no packages for arm64 from Debian's archive: $(tail -n 1 "$work/reach.log")"
version=$(sed -n 's/^version: *//p' "$root/deploy/helm/nos/Chart.yaml")

say "a release for both, pushed to a registry on loopback"
setpriv --pdeathsig TERM "$crane" registry serve --address 127.0.0.1:0 >"$work/registry.log" 2>&1 </dev/null &
registry_pid=$!
within 20 grep -q 'serving on port' "$work/registry.log"
registry=127.0.0.1:$(sed -n 's/.*serving on port \([0-9]*\).*/\1/p' "$work/registry.log")/team
expect '^image .*/team/nos@sha256:' "$root/script/release" "$version" --draft --binary "amd64=$amd64" \
  --binary "arm64=$arm64" --registry "$registry" --out "$work/release" --push --plain-http
expect '^image-arm64 .*@sha256:' cat "$work/release/DIGESTS"

say "the index has an image for each, and a node of arm64 gets its own"
expect '^amd64 arm64$' jq -r '[.manifests[].platform.architecture] | sort | join(" ")' <("$crane" manifest "$registry/nos:$version")
expect "^$(sed -n 's/^image-arm64 .*@//p' "$work/release/DIGESTS")$" "$crane" digest --platform linux/arm64 "$registry/nos:$version"
expect '^arm64 65532:65532$' jq -r '"\(.architecture) \(.config.User)"' <("$crane" config --platform linux/arm64 "$registry/nos:$version")
image=$work/image
mkdir "$image"
"$crane" export --platform linux/arm64 "$registry/nos:$version" - | tar -xp -C "$image" || fail "crane export"

say "all of its code is for arm64, and its program starts"
code=0
while IFS= read -r -d '' file; do
  machine=$(LC_ALL=C readelf -h "$file" 2>/dev/null | sed -n 's/^ *Machine: *//p')
  [ -n "$machine" ] || continue
  [ "$machine" = AArch64 ] || fail "$file is for $machine"
  code=$((code + 1))
done < <(find "$image" -type f \( -name '*.so*' -o -perm /111 \) -print0)
[ "$code" -gt 20 ] || fail "only $code files with code"
[ -e "$image/lib/ld-linux-aarch64.so.1" ] || fail "no dynamic linker"
cp "$(command -v qemu-aarch64-static)" "$image/emulator"
nos=(chroot --userspec=65532:65532 "$image" /emulator /usr/local/bin/nos)
expect "^nos $version" "${nos[@]}" version

say "its bill of materials names what is in it"
sbom=$work/release/nos-$version-arm64.spdx.json
for each in libssl3 libc6; do
  expect "^pkg:deb/debian/$each@.*arch=arm64" jq -r '.packages[].externalRefs[]?.referenceLocator' "$sbom"
done
packages=$(find "$image/var/lib/dpkg/status.d" -type f ! -name '*.md5sums' | wc -l)
expect "^$packages$" jq '[.relationships[] | select(.relationshipType == "CONTAINS" and
  (.relatedSpdxElement | startswith("SPDXRef-deb-")))] | length' "$sbom"
echo ok
