#!/bin/sh
# Makes ./configure from configure.ac, in a checkout that has none yet.
set -eu
cd "$(dirname "$0")"
autoreconf --install --warnings=all
