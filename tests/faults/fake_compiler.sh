#!/bin/sh
# Stands in for a compiler and linker: writes its command line and the digests of what it reads; links are 5 MB large.
[ "$1" = --version ] && echo "fake compiler 1.0" && exit
output= previous= size=0
for argument; do
  [ "$previous" = -o ] && output="$argument"
  [ "$argument" = -shared ] && size=5000000
  previous="$argument"
done
shift
{
  echo "$@"
  for argument; do
    [ "$argument" != "$output" ] && [ -f "$argument" ] && sha256sum "$argument"
  done
  head -c $size /dev/zero | tr '\0' x
} >"$output"
