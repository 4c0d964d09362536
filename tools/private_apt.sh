# Sourced by the scripts beside it: apt with package lists and caches of its own, so that neither root
# nor the system's lists are touched. The mirror and the architecture are the machine's own: apt
# tells both, whichever form its source lists have. They use fail, which says why and ends.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The URI of the configured mirror that has this machine's Debian release.
configured_mirror()
{
	# shellcheck disable=SC1091 # a file of the machine
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # $(…) is apt's own syntax here
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v codename="$codename" '$2 == codename && $3 == "main" { print $1; exit }'
}

# private_apt_init DIR SUITE...: reads the package lists of these suites of Debian into DIR.
private_apt_init()
{
	apt_dir=$1
	shift
	[ -e "$keyring" ] || fail "$keyring is missing (Debian: debian-archive-keyring)"
	mirror=${GOHEAPD_MIRROR:-$(configured_mirror)}
	[ -n "$mirror" ] ||
		fail "apt's source lists name no mirror of this Debian release; set GOHEAPD_MIRROR to one"
	mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
	for apt_suite in "$@"; do
		echo "deb [signed-by=$keyring] $mirror $apt_suite main"
	done >"$apt_dir/sources.list"
	private_apt update || fail "cannot read the package lists of $*"
}

# apt-get with these lists, after private_apt_init.
private_apt()
{
	apt-get -qq \
		-o Dir::Etc::SourceList="$apt_dir/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$apt_dir/lists" -o Dir::Cache="$apt_dir/cache" \
		-o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

