#!/bin/sh
# Fetches the Go toolchains that the tests need, as Debian ships them, and unpacks them into a cache
# folder; nothing is installed. DIR/usr/lib/go-1.N is then a GOROOT. A version that is there already
# is left alone, so running this again costs nothing.
#
# The mirror and the architecture are the machine's own: apt tells both, whichever form its source
# lists have.
set -eu

usage()
{
	cat <<'USAGE'
usage: tools/toolchains.sh [DIR]

DIR defaults to $GOHEAPD_TOOLCHAINS, else to ${XDG_CACHE_HOME:-~/.cache}/goheapd/toolchains.
GOHEAPD_GO_VERSIONS narrows the versions, as in GOHEAPD_GO_VERSIONS="1.19 1.26".
GOHEAPD_MIRROR names a Debian mirror where apt's own source lists name none.
USAGE
}

# Go version and the Debian suite that has it.
toolchains='
1.15 bullseye
1.19 bookworm
1.21 bookworm-backports
1.22 bookworm-backports
1.23 bookworm-backports
1.24 trixie
1.25 trixie-backports
1.26 trixie-backports
1.27 trixie-backports
'

# shellcheck source=tools/private_apt.sh
. "$(dirname "$0")/private_apt.sh"

fail()
{
	echo "toolchains: $*" >&2
	exit 1
}

is_unpacked()
{
	[ -x "$dir/usr/lib/go-$1/bin/go" ] && [ -e "$dir/usr/lib/go-$1/src/runtime/proc.go" ]
}

# The lines of $toolchains that are asked for and not there yet.
missing_toolchains()
{
	echo "$toolchains" | while read -r version suite; do
		case " ${GOHEAPD_GO_VERSIONS:-$version} " in
		*" $version "*) ;;
		*) continue ;;
		esac
		[ -z "$version" ] || is_unpacked "$version" || echo "$version $suite"
	done
}

# Moves one unpacked version into place; the GOROOT comes last, since is_unpacked looks at it.
install_version()
{
	mkdir -p "$dir/usr/lib" "$dir/usr/share"
	rm -rf "$dir/usr/lib/go-$1" "$dir/usr/share/go-$1"
	mv "$work/unpacked/usr/share/go-$1" "$dir/usr/share/"
	mv "$work/unpacked/usr/lib/go-$1" "$dir/usr/lib/"
}

fetch_version()
{
	version=$1 suite=$2
	rm -rf "$work/debs" "$work/unpacked"
	mkdir -p "$work/debs" "$work/unpacked"
	(cd "$work/debs" &&
		private_apt download "golang-$version-go/$suite" "golang-$version-src/$suite") ||
		fail "cannot download golang-$version-go and golang-$version-src from $suite"
	for deb in "$work"/debs/*.deb; do
		dpkg-deb -x "$deb" "$work/unpacked" || fail "cannot unpack ${deb##*/}"
	done
	install_version "$version"
	"$dir/usr/lib/go-$version/bin/go" version ||
		fail "$dir/usr/lib/go-$version/bin/go does not run"
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
-*)
	usage >&2
	exit 2
	;;
esac
dir=${1:-${GOHEAPD_TOOLCHAINS:-${XDG_CACHE_HOME:-$HOME/.cache}/goheapd/toolchains}}
mkdir -p "$dir" || fail "cannot make $dir"
dir=$(cd "$dir" && pwd)
wanted=$(missing_toolchains)
if [ -z "$wanted" ]; then
	echo "toolchains: all present in $dir"
	exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	fail "needs apt-get and dpkg-deb; elsewhere put GOROOTs at $dir/usr/lib/go-1.N by hand"
fi

# Beside the cache, so that moving into it is a rename.
work=$(mktemp -d "$dir/.fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
suites=$(echo "$wanted" | cut -d' ' -f2 | sort -u)
echo "toolchains: reading package lists of $(echo "$suites" | paste -sd' ')"
# shellcheck disable=SC2086 # names without blanks
private_apt_init "$work" $suites
echo "$wanted" | while read -r version suite; do
	echo "toolchains: go$version from $suite"
	fetch_version "$version" "$suite"
done
echo "toolchains: all in $dir"
