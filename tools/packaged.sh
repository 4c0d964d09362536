#!/bin/sh
# Fetches some packaged Go programs that the tests scan, and unpacks them into a cache folder;
# nothing is installed: Debian's by apt, and esbuild, whose binary tells nothing of its making, by
# npm where that is there; and upx, which packs programs. What is there already is left alone.
set -eu

usage()
{
	cat <<'USAGE'
usage: tools/packaged.sh [DIR]

DIR defaults to $GOHEAPD_PACKAGED, else to ${XDG_CACHE_HOME:-~/.cache}/goheapd/packaged.
USAGE
}

packages='prometheus prometheus-node-exporter etcd-server caddy'
esbuild=@esbuild/linux-x64@0.28.2
upx_suite=bookworm-backports

# shellcheck source=tools/private_apt.sh
. "$(dirname "$0")/private_apt.sh"

fail()
{
	echo "packaged: $*" >&2
	exit 1
}

fetch_package()
{
	[ ! -e "$dir/$1.done" ] || return 0
	echo "packaged: $1"
	(cd "$work" && apt-get -qq -o APT::Sandbox::User= download "$1") ||
		fail "cannot download $1; as root run: apt-get update"
	dpkg-deb -x "$work/$1"_*.deb "$dir"
	touch "$dir/$1.done"
}

fetch_esbuild()
{
	[ ! -x "$dir/usr/bin/esbuild" ] || return 0
	if ! command -v npm >/dev/null; then
		echo "packaged: no npm, and so no esbuild"
		return 0
	fi
	echo "packaged: esbuild"
	(cd "$work" && npm pack --silent "$esbuild" >/dev/null && tar -xzf ./*.tgz) ||
		fail "cannot fetch $esbuild"
	mkdir -p "$dir/usr/bin"
	mv "$work/package/bin/esbuild" "$dir/usr/bin/esbuild"
}

fetch_upx()
{
	[ ! -x "$dir/usr/bin/upx-ucl" ] || return 0
	echo "packaged: upx-ucl"
	private_apt_init "$work" "$upx_suite"
	(cd "$work" && private_apt download "upx-ucl/$upx_suite") ||
		fail "cannot download upx-ucl from $upx_suite"
	dpkg-deb -x "$work"/upx-ucl_*.deb "$dir"
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
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	fail "needs apt-get and dpkg-deb"
fi
dir=${1:-${GOHEAPD_PACKAGED:-${XDG_CACHE_HOME:-$HOME/.cache}/goheapd/packaged}}
mkdir -p "$dir" || fail "cannot make $dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d "$dir/.fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
for package in $packages; do
	fetch_package "$package"
done
fetch_esbuild
fetch_upx
echo "packaged: all in $dir"
