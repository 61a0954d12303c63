#!/bin/sh
# Stands in for a compiler and linker: writes its command line and the digests of what it reads, behind an ELF object whose
# code is one vfmadd231ps, as reports about kernels want one; links are 5 MB large.
[ "$1" = --version ] && echo "fake compiler 1.0" && exit
output= previous= size=0
for argument; do
  [ "$previous" = -o ] && output="$argument"
  [ "$argument" = -shared ] && size=5000000
  previous="$argument"
done
shift
{
  printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\1\0>\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0V\0\0\0\0\0\0\0\0\0\0\0@\0\0\0\0'
  printf '\0@\0\3\0\2\0\304\342u\270\302\0.text\0.shstrtab\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0'
  printf '\0\0\0@\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\3\0\0\0\0\0\0\0'
  printf '\0\0\0\0\0\0\0\0\0\0\0\0E\0\0\0\0\0\0\0\21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  echo "$@"
  for argument; do
    [ "$argument" != "$output" ] && [ -f "$argument" ] && sha256sum "$argument"
  done
  head -c $size /dev/zero | tr '\0' x
} >"$output"
