#!/usr/bin/perl
# Checks what a library uses. Every build runs it (cmake/Library.cmake):
#
#   check_library.pl includes library=gpu dir=src/gpu deps=base parts=a,b:a roots=src
#   check_library.pl calls library=gpu dir=src/gpu parts=a,b:a nm=nm objects=FOLDER FILE.o...
#
# `includes` refuses an #include of a library that is not declared, of another library's part, and of a
# part that the including part does not name. `calls` reads the symbols of the compiled files and
# refuses a use of a function or variable that another part defines, however it was declared.
#
#   deps, test_deps   libraries that may be included; test_deps by tests and doubles only
#   parts             parts bottom-up, each with those it may use: "model,search:model,explain:model+search"
#   open              parts of other libraries that may be included
#   roots             folders of our own headers
#
# A file belongs to the part whose folder it lies in. At the top of the library it belongs to the part
# with its name: src/scheduling/preemption.{h,cc} to `preemption`. A header at the top with a source in a
# part belongs to that part: src/planning/growth.h to `scaling`, which has growth.cc. Other headers at
# the top may be included by every part that may include what they include. Tests use every part.
use strict;
use warnings;

my $mode = shift;
my %arg = map { /^(\w+)=(.*)$/s ? ($1 => $2) : () } grep { /^\w+=/ } @ARGV;
my @objects = grep { !/^\w+=/ } @ARGV;
my ($library, $dir) = @arg{qw(library dir)};
sub list { return split /[,;]/, $arg{$_[0]} // "" }

my $failed = 0;
sub refuse { print STDERR "@_\n"; $failed = 1 }

# $may{$part}{$other}: $part may use $other.
my %may;
for (list("parts")) {
  my ($name, $uses) = m{^([a-z_/]+)(?::([a-z_/+]*))?$} or die "library $library: part '$_' is none\n";
  -d "$dir/$name" or die "library $library: part '$name' has no folder\n";
  $may{$name}{$name} = 1;
  for my $use (split /\+/, $uses // "") {
    $may{$use} or die "library $library: part '$name' names '$use', which is not declared before it\n";
    $may{$name}{$use} = 1;
  }
}

# The declared part that a path below the library's folder lies in, or whose name it has; "": none.
sub part_of {
  my ($path) = @_;
  $path =~ s/\.[a-z]+$//;
  for (my $part = $path; ; ) {
    return $part if $may{$part};
    $part =~ s{/[^/]*$}{} or return "";
  }
}

sub is_test { return $_[0] =~ m{_test\.(?:cc|h)$|(?:^|/)testing/} }

# The sources and headers below a folder, as paths in the library's.
sub files_below {
  my ($folder) = @_;
  my $in = $folder eq "" ? "" : "$folder/";
  opendir my $list, "$dir/$folder" or die "$dir/$folder: $!\n";
  my @names = map { "$in$_" } grep { !/^\./ } sort readdir $list;
  return map { -d "$dir/$_" && !-l "$dir/$_" ? files_below($_) : /\.(?:cc|h)$/ ? $_ : () } @names;
}
my @files = files_below("");

sub read_file {
  my ($path) = @_;
  open my $in, "<:raw", $path or die "$path: $!\n";
  local $/;
  return scalar <$in> // "";
}

# The part of a header at the top whose source lies in a part.
my %home;
for my $file (grep { !is_test($_) } @files) {
  my $part = part_of($file);
  if (%may && $part eq "" && $file =~ m{/|\.cc$} && $file ne "main.cc") {
    refuse("$dir/$file: lies in no part that library $library declares");
  }
  my ($stem) = $file =~ m{/([^/]+)\.cc$} or next;
  my ($first) = read_file("$dir/$file") =~ m{^\#include "([^"]*)"}m;
  $home{"$stem.h"} = $part if defined $first && $first eq "$library/$stem.h";
}

# The part that a file belongs to; "": none.
sub owner_of {
  my ($file) = @_;
  return part_of($file) || ($home{$file} // "");
}

# The parts that a header at the top stands for: its own, or those of the headers that it includes.
my %stands;
sub stands_for {
  my ($header) = @_;
  return $stands{$header} if $stands{$header};
  my %parts;
  $stands{$header} = \%parts;  # headers that include each other end here
  if (my $owner = owner_of($header)) {
    $parts{$owner} = 1;
  } elsif (-f "$dir/$header") {
    for (read_file("$dir/$header") =~ m{^#include "$library/([^"]*)"}gm) {
      $parts{$_} = 1 for m{/} ? part_of($_) : keys %{stands_for($_)};
    }
  }
  return \%parts;
}

sub check_own {
  my ($file, $path) = @_;
  my $part = owner_of($file);
  return if !%may || $part eq "";
  my %used = $path =~ m{/} ? (part_of($path) => 1) : %{stands_for($path)};
  return refuse("$dir/$file: includes $path, which lies in no part that $library declares") if $used{""};
  for my $use (sort keys %used) {
    refuse("$dir/$file: part '$part' includes '$path' of part '$use', which it does not declare")
      unless $may{$part}{$use};
  }
}

# There is one way to write an include of our own, "library/path.h" at the start of a line, and <path>
# is for what is not below a root. Every other line that the compiler could take for an include is
# refused, be it a comment before it or a line that goes on in the next one: '#', also as a digraph or
# trigraph, and all that may come between it and the word.
my $directive = qr{(?:\#|%:|\?\?=)[ \t]*(?:/\*|\?\?/|\\|i[a-z_]*(?:\\|\?\?/)|include|import)};
my %dep = map { $_ => 1 } $library, list("deps");
my %test_dep = map { s/_testing$//r => 1 } list("test_deps");
my %open = map { $_ => 1 } list("open");

sub check_line {
  my ($file, $line) = @_;
  my $test = is_test($file);
  if ($line =~ m{^#include <([^/<>][^<>]*)>$} && $line !~ /\.\./) {
    my ($first) = split m{/}, $1;
    return unless grep { -e "$_/$first" } list("roots");
  } elsif ($line =~ m{^#include "([a-z]+)/([a-z0-9_/]+\.h)"$}) {
    my ($used, $path) = ($1, $2);
    return refuse("$dir/$file: includes library '$used', which library $library does not declare")
      unless $dep{$used} || ($test && $test_dep{$used});
    return refuse("$dir/$file: includes $used/$path, which is for tests only")
      if !$test && is_test($path);
    return $test || check_own($file, $path) if $used eq $library;
    my ($part) = $path =~ m{^([^/]+)/};
    return if !defined $part || $part eq "testing" || $open{"$used/$part"};
    return refuse("$dir/$file: includes $used/$path, which lies in a part of $used; "
                  . "other libraries include the headers at its top only");
  }
  refuse("$dir/$file: '$line': write #include \"library/path.h\" for what is below src, "
         . "#include <path> for the rest, each alone on its line");
}

sub check_includes {
  for my $file (@files) {
    my $text = read_file("$dir/$file");
    # Blanks for the compiler, ends of lines or of the file for other readers.
    refuse("$dir/$file: has a control character, which could hide an include")
      if $text =~ /[\x00-\x08\x0b-\x1f\x7f]/;
    /$directive/ && check_line($file, $_) for split /\n/, $text;
  }
}

sub readable {
  my ($symbol) = @_;
  open my $out, "-|", "c++filt", $symbol or return $symbol;
  my $name = <$out> // $symbol;
  chomp $name;
  return $name;
}

# Uses of strong symbols: inline functions and templates are in every file that needs them.
sub check_calls {
  my (%defined, %undefined);
  open my $nm, "-|", $arg{nm}, "-A", "-P", @objects or die "$arg{nm}: $!\n";
  while (<$nm>) {
    # FILE: SYMBOL TYPE ...
    my ($object, $symbol, $type) = m{^(.*): (\S+) (\w)} or next;
    # Sources that are generated belong to no part.
    my ($file) = $object =~ m{^\Q$arg{objects}\E/(.*)\.o$} or next;
    $defined{$symbol} = $file if $type =~ /[TDBR]/;
    push @{$undefined{$symbol}}, $file if $type eq "U";
  }
  close $nm or die "$arg{nm} failed\n";
  my %reported;
  for my $symbol (sort keys %undefined) {
    my $there = $defined{$symbol} // next;
    my $use = part_of($there);
    for my $file (sort @{$undefined{$symbol}}) {
      my $part = part_of($file);
      next if $part eq "" || $use eq "" || $may{$part}{$use} || $reported{$file, $there}++;
      my $name = readable($symbol);
      refuse("$dir/$file: part '$part' calls $name of part '$use' ($there), which it does not declare");
    }
  }
}

$mode eq "includes" ? check_includes() : check_calls();
exit $failed;
