#!/usr/bin/env bash
# Types the commands of README.md and of the pages below docs/ that are marked for it against sandboxes,
# exactly as written, and compares what they print with what the page shows.
#
#   docs_test.sh NOS ROOT [PAGE...]      ends with 77 (skipped) without kubectl
#
# Marked is a block that begins with ```console sandbox. In it "$ " is before a command, and the lines up to
# the next one are its output. There "…" stands for any text, a line "..." for any lines, and a time such
# as 45s or 2026-11-29T16:30:15Z for any other; with the further word "numbers" each number stands for any other. Output that follows
# nothing is not compared. `nos sandbox` and script/up run until the page starts another one or ends. A command that
# only reads is repeated until it prints what the page shows, for a minute.
set -u

nos=$(readlink -f "$1")
root=$(readlink -f "$2")
shift 2
command -v kubectl >/dev/null || { echo "skipped: no kubectl on this machine"; exit 77; }
work=$(mktemp -d)
sandbox=
stop() {
  [ -z "$sandbox" ] || { kill -INT -- "-$sandbox" && wait "$sandbox"; } 2>/dev/null
  sandbox=
}
trap 'stop; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# Prints each command of a page as N.command, its output as N.shown and its block's words as N.words.
take() { # PAGE FOLDER
  perl -Mstrict -Mwarnings -e '
    my ($page, $folder) = @ARGV;
    my ($number, $words, $open, $out) = (0);
    my $put = sub {
      my ($kind, $text) = @_;
      open my $file, ">>", sprintf("%s/%03d.%s", $folder, $number, $kind) or die $!;
      print $file $text;
    };
    open my $in, "<", $page or die "$page: $!";
    while (my $line = <$in>) {
      if (!defined $words) {
        $words = $1 if $line =~ /^```console sandbox\b(.*)/;
        next;
      }
      if ($line =~ /^```/) { undef $words; undef $open; next }
      if (defined $open) {
        $put->("command", $line);
        undef $open if $open eq "\\" ? $line !~ /\\$/ : $line =~ /^\Q$open\E$/;
      } elsif ($line =~ s/^\$ //) {
        ++$number;
        $put->("command", $line);
        $put->("words", "$words line $.\n");
        $open = $line =~ /<<(\w+)/ ? $1 : $line =~ /\\$/ ? "\\" : undef;
      } else {
        $put->("shown", $line);
      }
    }' "$1" "$2"
}

# True if the output is what the page shows.
alike() { # SHOWN OUTPUT WORDS
  perl -Mstrict -Mwarnings -Mutf8 -CSDA -0777 -e '
    my ($shown, $output, $words) = @ARGV;
    my $read = sub { open my $in, "<:utf8", $_[0] or die "$_[0]: $!"; my $text = <$in> // ""; $text =~ s/[ \t]+$//mgr };
    my $text = $read->($output);
    my $pattern = "";
    for my $line (split /\n/, $read->($shown)) {
      if ($line eq "...") { $pattern .= "(?:.*\n)*?"; next }
      my @parts = split /(…|\.\.\.|\s+|\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d+(?:\.\d+)?(?:ms|s|m|h|d)(?:\d+(?:s|m|h))*\b|(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-]))/, $line;
      for my $part (@parts) {
        $pattern .= $part =~ /^(?:…|\.\.\.)$/ ? ".*"
            : $part =~ /^\s+$/ ? "[ \\t]+"
            : $part =~ /^\d{4}-.*Z$/ ? "\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z"
            : $part =~ /^\d[\d.]*(?:ms|s|m|h|d)[\dsmh]*$/ ? "(?:\\d[\\d.]*(?:ms|s|m|h|d)\\w*|<invalid>)"
            : $part =~ /^\d[\d.,]*$/ && $words =~ /\bnumbers\b/ ? "\\d[\\d.,]*"
            : quotemeta $part;
      }
      $pattern .= "\n";
    }
    $text .= "\n" if length $text && $text !~ /\n\z/;
    exit($text =~ /\A$pattern(?:\n*)\z/ ? 0 : 1)' "$1" "$2" "$3"
}

# The matcher refuses, too.
same() { printf '%b' "$1" >"$work/a"; printf '%b' "$2" >"$work/b"; alike "$work/a" "$work/b" "${3:-}"; }
same 'a 45s …\n...\nend\n' 'a   3m2s x y\nb\nc\nend\n' || fail "the matcher refuses what is alike"
same 'node-1 8 of 9 x 1g.5gb\n' 'node-1 3 of 4 x 1g.5gb\n' numbers || fail "numbers are loose where a block says so"
for pair in 'a|b' 'a 8|a 9' '1g.5gb|1g.10gb' 'a\n|a\nb\n' 'a\n...\nc|a\nb\n' 'node-1 8|node-2 8'; do
  ! same "${pair%|*}" "${pair#*|}" || fail "the matcher takes '$pair'"
done
for pair in 'node-1 8|node-2 8' '1g.5gb|2g.5gb'; do
  ! same "${pair%|*}" "${pair#*|}" numbers || fail "the matcher takes '$pair'"
done

start() { # COMMAND: a sandbox in the background, until it serves
  stop
  : >"$work/log"
  set -m
  eval "$1" >"$work/log" 2>&1 </dev/null &
  sandbox=$!
  set +m
  for _ in $(seq 600); do
    grep -q '^try: kubectl ' "$work/log" && return
    kill -0 "$sandbox" 2>/dev/null || break
    sleep 0.1
  done
  echo "$page: $1: $(cat "$work/log")"
  return 1
}

# Types the commands of a page, in one shell; counts them in `typed`.
type_page() {
  local each command words shown deadline
  typed=0
  for each in "$work/$page"/*.command; do
    command=$(cat "$each")
    words=$(cat "${each%.command}.words")
    shown=${each%.command}.shown
    if [[ $command =~ ^(script/up|nos\ sandbox)($|\ ) ]] && [[ $command != *--for\ * ]]; then
      start "$command" || return 1
    else
      deadline=$((SECONDS + 60))
      [[ $command =~ ^(nos|kubectl\ (nos|get|describe|explain|wait|logs))\  ]] || deadline=0
      until eval "$command" >"$work/out" 2>&1 </dev/null &&
        { [ ! -e "$shown" ] || alike "$shown" "$work/out" "$words"; }; do
        if [ "$SECONDS" -ge "$deadline" ]; then
          printf '%s,%s: $ %s\n--- the page shows\n%s\n--- it prints\n%s\n' "$page" "$words" "$command" \
            "$(cat "$shown" 2>/dev/null)" "$(cat "$work/out")"
          return 1
        fi
        sleep 0.3
      done
    fi
    typed=$((typed + 1))
  done
}

# script/up would build: here it is its last line, with the program to be tested.
[ "$(tail -1 "$root/script/up")" = 'exec build/release/nos sandbox "$@"' ] || fail "script/up does something else"
home=$work/home
mkdir -p "$home/build/release" "$home/script" "$work/programs"
ln -s "$nos" "$home/build/release/nos"
ln -s "$nos" "$work/programs/nos"
ln -s "$nos" "$work/programs/kubectl-nos"
ln -s "$root/examples" "$home/examples"
printf '#!/bin/sh\n%s\n' 'exec build/release/nos sandbox "$@"' >"$home/script/up"
chmod +x "$home/script/up"
export HOME=$home TMPDIR=$work PATH=$work/programs:$PATH
unset KUBECONFIG

[ $# -gt 0 ] || mapfile -t pages < <(cd "$root" && grep -l '^```console sandbox' README.md docs/*.md)
pages=("${pages[@]}" "$@")
total=0
shopt -s nullglob
for page in "${pages[@]}"; do
  mkdir -p "$work/$page"
  take "$root/$page" "$work/$page"
  cd "$home" || exit 1
  type_page || fail "$page"
  stop
  unset KUBECONFIG
  total=$((total + typed))
done
[ $# -gt 0 ] || { [ "${#pages[@]}" -ge 5 ] && [ "$total" -ge 25 ]; } || fail "only $total commands on ${#pages[@]} pages"
echo "ok: $total commands on ${#pages[@]} pages"
