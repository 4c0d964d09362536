#include "agent/target/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	FIRST_CAPACITY = 4096,
	STAT_LIMIT = 1 << 20, /* /proc/stat has a number for every interrupt */
	LINE_LIMIT = 4096,    /* of /proc/PID/stat */
	IDS_LIMIT = 1 << 22,  /* the kernel's own limit of pids */
};

/* A file of a process that ended between open and read answers ESRCH. */
static struct error *read_error(const char *path)
{
	int errnum = errno;

	if (errnum == ENOENT || errnum == ENOTDIR)
		errnum = ESRCH;
	return error_system(errnum, "%s", path);
}

static struct error *grow(struct procfs_text *text, size_t *capacity, size_t limit)
{
	char *data;

	if (*capacity > limit)
		return error_new(ERROR_LIMIT, "more than %zu bytes", limit);
	*capacity = *capacity ? *capacity * 2 : FIRST_CAPACITY;
	data = realloc(text->data, *capacity);
	if (!data)
		return &error_nomem;
	text->data = data;
	return NULL;
}

/* Reads up to the end; one byte of the buffer is kept for the NUL. */
static struct error *read_all(int fd, size_t limit, const char *path, struct procfs_text *text)
{
	size_t capacity = 0;

	for (;;) {
		struct error *err = NULL;
		ssize_t got;

		if (text->size + 1 >= capacity)
			err = grow(text, &capacity, limit);
		if (err)
			return error_context(err, "%s", path);
		got = read(fd, text->data + text->size, capacity - text->size - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return read_error(path);
		if (!got)
			break;
		text->size += (size_t)got;
	}
	text->data[text->size] = '\0';
	if (text->size > limit)
		return error_new(ERROR_LIMIT, "%s: more than %zu bytes", path, limit);
	return NULL;
}

struct error *procfs_read(struct procfs_text *ret, size_t limit, const char *format, ...)
{
	struct procfs_text text = { 0 };
	char path[PATH_MAX];
	struct error *err;
	va_list args;
	int fd, size;

	va_start(args, format);
	size = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (size < 0 || (size_t)size >= sizeof(path))
		return error_new(ERROR_LIMIT, "a path of %d bytes", size);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return read_error(path);
	err = read_all(fd, limit, path, &text);
	close(fd);
	if (err) {
		procfs_text_fini(&text);
		return err;
	}
	*ret = text;
	return NULL;
}

void procfs_text_fini(struct procfs_text *text)
{
	free(text->data);
	*text = (struct procfs_text){ 0 };
}

const char *procfs_field(const struct procfs_text *text, const char *key)
{
	size_t size = strlen(key);
	const char *line = text->data;

	while (line) {
		if (!strncmp(line, key, size) && isspace((unsigned char)line[size])) {
			line += size;
			while (*line == ' ' || *line == '\t')
				line++;
			return line;
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return NULL;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return INT_MAX;
}

bool procfs_number(const char **pos, int base, uint64_t *ret)
{
	const char *p = *pos;
	uint64_t value = 0;

	while (*p == ' ' || *p == '\t')
		p++;
	if (digit_value(*p) >= base)
		return false;
	for (; digit_value(*p) < base; p++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit_value(*p), &value))
			return false;
	}
	*pos = p;
	*ret = value;
	return true;
}

static bool entry_id(const char *name, pid_t *ret)
{
	uint64_t id;

	if (!isdigit((unsigned char)*name) || !procfs_number(&name, 10, &id) || *name ||
	    id > INT_MAX)
		return false;
	*ret = (pid_t)id;
	return true;
}

static struct error *collect_ids(DIR *dir, pid_t **ids, size_t *count)
{
	size_t capacity = 0;
	struct dirent *entry;
	pid_t id;

	while ((entry = readdir(dir))) {
		if (!entry_id(entry->d_name, &id))
			continue;
		if (*count == IDS_LIMIT)
			return error_new(ERROR_LIMIT, "more than %d entries", IDS_LIMIT);
		if (*count == capacity) {
			size_t more = capacity ? capacity * 2 : 64;
			pid_t *bigger = reallocarray(*ids, more, sizeof(*bigger));

			if (!bigger)
				return &error_nomem;
			*ids = bigger;
			capacity = more;
		}
		(*ids)[(*count)++] = id;
	}
	return NULL;
}

struct error *procfs_ids(const char *folder, pid_t **ret, size_t *ret_count)
{
	pid_t *ids scoped(freep) = NULL;
	size_t count = 0;
	struct error *err;
	DIR *dir = opendir(folder);

	if (!dir)
		return read_error(folder);
	err = collect_ids(dir, &ids, &count);
	closedir(dir);
	if (err)
		return error_context(err, "%s", folder);
	*ret = take(ids);
	*ret_count = count;
	return NULL;
}

/* Numbers of the fields in proc(5). */
enum {
	STAT_PARENT = 4,
	STAT_FLAGS = 9,
	STAT_THREADS = 20,
	STAT_START = 22,
	STAT_EXIT_SIGNAL = 38,
};

static bool signed_number(const char **pos, int64_t *ret)
{
	uint64_t value;
	bool negative;

	while (**pos == ' ')
		++*pos;
	negative = **pos == '-';
	if (negative)
		++*pos;
	if (!procfs_number(pos, 10, &value))
		return false;
	*ret = negative ? -(int64_t)(value & INT64_MAX) : (int64_t)value;
	return true;
}

/* comm is in parentheses and may hold some itself, and blanks: fields begin after the last. */
struct error *procfs_stat_parse(const char *line, struct procfs_stat *ret)
{
	const char *p = strrchr(line, ')');
	struct procfs_stat stat = { 0 };

	if (!p || p[1] != ' ' || !p[2])
		return error_new(ERROR_FORMAT, "stat: no state");
	stat.state = p[2];
	p += 3;
	for (int field = STAT_PARENT; field <= STAT_EXIT_SIGNAL; field++) {
		int64_t value;

		if (!signed_number(&p, &value))
			return error_new(ERROR_FORMAT, "stat: field %d is no number", field);
		if (field == STAT_PARENT)
			stat.parent = (pid_t)value;
		else if (field == STAT_FLAGS)
			stat.flags = (uint64_t)value;
		else if (field == STAT_THREADS)
			stat.thread_count = (uint64_t)value;
		else if (field == STAT_START)
			stat.start_ticks = (uint64_t)value;
		else if (field == STAT_EXIT_SIGNAL)
			stat.exit_signal = (int)value;
	}
	*ret = stat;
	return NULL;
}

struct error *procfs_stat(const struct procfs *procfs, pid_t pid, pid_t tid,
			  struct procfs_stat *ret)
{
	struct procfs_text text;
	struct error *err =
	    procfs_read(&text, LINE_LIMIT, "%s/%d/task/%d/stat", procfs->proc, pid, tid);

	if (err)
		return err;
	err = procfs_stat_parse(text.data, ret);
	procfs_text_fini(&text);
	return err;
}

bool procfs_state_dead(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

struct error *procfs_init(struct procfs *ret, const char *proc, const char *cgroup)
{
	struct procfs_text text;
	const char *value;
	uint64_t seconds;
	struct error *err = procfs_read(&text, STAT_LIMIT, "%s/stat", proc);

	if (err)
		return err;
	value = procfs_field(&text, "btime");
	if (!value || !procfs_number(&value, 10, &seconds) || seconds > INT64_MAX / 1000000000)
		err = error_new(ERROR_FORMAT, "%s/stat: no btime", proc);
	procfs_text_fini(&text);
	if (err)
		return err;
	*ret = (struct procfs){
		.proc = proc,
		.cgroup = cgroup,
		.boot_time_ns = seconds * 1000000000,
		.ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK),
	};
	return NULL;
}
