# Makes C of layout_table_ARCH.txt: for each column a struct layout and its witnesses, then the
# list of them all. A row that layout.def does not know, or the other way round, ends the build.
#
#	awk -v arch=amd64 -f layout_table.awk layout.def layout_table_amd64.txt

function fail(message)
{
	print FILENAME ": " message > "/dev/stderr"
	failed = 1
	exit 1
}

# What layout.def declares, as "kind name".
FNR == NR {
	if (match($0, /^(STRUCT|FIELD|CONSTANT|GLOBAL)\(/)) {
		kind = tolower(substr($0, 1, RLENGTH - 1))
		split(substr($0, RLENGTH + 1), parts, /, */)
		known[kind " " (kind == "field" ? parts[1] "." parts[2] : parts[1])] = 1
	}
	next
}

/^#/ || /^$/ { next }

$1 == "columns" {
	column_count = NF - 1
	for (i = 1; i <= column_count; i++)
		version[i] = $(i + 1)
	next
}

$1 == "ref" {
	if (NF != column_count + 3)
		fail("ref " $2 " " $3 ": " NF - 3 " cells")
	for (i = 1; i <= column_count; i++) {
		if ($(i + 3) == "-")
			continue
		accesses = split($(i + 3), access_list, ",")
		for (j = 1; j <= accesses; j++) {
			split(access_list[j], access, "/")
			refs[i] = refs[i] "\t{ \"" $3 "\", LAYOUT_GLOBAL_" $2 ", " access[1] ", " access[2] " },\n"
		}
	}
	next
}

{
	if (NF != column_count + 2)
		fail($1 " " $2 ": " NF - 2 " cells")
	if (!(($1 " " $2) in known))
		fail($1 " " $2 " is not in layout.def; make the table anew (docs/development.md)")
	seen[$1 " " $2] = 1
	member = $2
	sub(/\./, "_", member)
	for (i = 1; i <= column_count; i++) {
		value = $(i + 2)
		if (value == "-")
			continue
		sub(/\+/, ", ", value)
		if ($1 == "constant")
			fields[i] = fields[i] "\t.const_" member " = { " value ", true },\n"
		else if ($1 == "global")
			fields[i] = fields[i] "\t.global_" member " = { 0, " value " },\n"
		else
			fields[i] = fields[i] "\t." member " = { " value " },\n"
	}
}

END {
	if (failed)
		exit 1
	for (entry in known)
		if (!(entry in seen))
			fail(entry " is missing; make the table anew (docs/development.md)")
	for (i = 1; i <= column_count; i++) {
		print "static const struct layout layout_" arch "_" i " = {\n" fields[i] "};\n"
		if (refs[i] != "")
			print "static const struct global_ref refs_" arch "_" i "[] = {\n" refs[i] "};\n"
	}
	print "static const struct layout_table_entry table_" arch "[] = {"
	for (i = 1; i <= column_count; i++) {
		name = "refs_" arch "_" i
		witnesses = refs[i] == "" ? "NULL, 0" : name ", sizeof(" name ") / sizeof(" name "[0])"
		print "\t{ \"" version[i] "\", &layout_" arch "_" i ", " witnesses " },"
	}
	print "};"
}
