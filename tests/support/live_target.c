#include "tests/support/live_target.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/binary/build_info.h"
#include "agent/binary/dwarf_types.h"
#include "agent/binary/elf_file.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/layout_discover.h"

enum { PATH_MAX_SIZE = 64, AUXV_MAX = 128 };

struct proc_memory {
	struct memory memory;
	int fd;
};

static struct error *proc_memory_read(struct memory *memory, taddr addr, void *buf, size_t size)
{
	const struct proc_memory *proc = (struct proc_memory *)memory;
	ssize_t n = pread(proc->fd, buf, size, (off_t)addr);

	if (n != (ssize_t)size)
		return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
	return NULL;
}

static void proc_memory_free(struct memory *memory)
{
	struct proc_memory *proc = (struct proc_memory *)memory;

	memory_fini(memory);
	closep(&proc->fd);
	free(proc);
}

/* A thread that has memory: the leader may have ended. */
static pid_t live_thread(pid_t pid)
{
	char path[PATH_MAX_SIZE], link[1];
	const struct dirent *entry;
	pid_t found = pid;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", (int)pid, atoi(entry->d_name));
		if (readlink(path, link, sizeof(link)) < 0)
			continue;
		found = atoi(entry->d_name);
		break;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

static struct error *open_proc(pid_t pid, const char *name, int *ret)
{
	char path[PATH_MAX_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)live_thread(pid), name);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret < 0)
		return error_system(errno, "%s", path);
	return NULL;
}

static struct error *open_memory(pid_t pid, struct memory **ret)
{
	static const struct memory_ops ops = { .read = proc_memory_read, .free = proc_memory_free };
	struct proc_memory *proc = calloc(1, sizeof(*proc));
	struct error *err;

	if (!proc)
		return &error_nomem;
	memory_init(&proc->memory, &ops);
	err = open_proc(pid, "mem", &proc->fd);
	if (err) {
		memory_free(&proc->memory);
		return err;
	}
	*ret = &proc->memory;
	return NULL;
}

/* By the entry point that the kernel told the program in its auxiliary vector. */
static struct error *read_load_bias(pid_t pid, const struct elf_file *elf, uint64_t *ret)
{
	uint64_t auxv[AUXV_MAX];
	int fd scoped(closep) = -1;
	struct error *err = open_proc(pid, "auxv", &fd);
	ssize_t size = err ? 0 : read(fd, auxv, sizeof(auxv));

	for (ssize_t i = 0; (i + 2) * (ssize_t)sizeof(*auxv) <= size; i += 2) {
		if (auxv[i] != AT_ENTRY)
			continue;
		*ret = auxv[i + 1] - elf_file_entry(elf);
		return NULL;
	}
	return err ? err : error_new(ERROR_GONE, "no auxiliary vector");
}

static struct error *read_dwarf(const struct live_target *target, const char *version,
				struct layout **ret)
{
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct error *err = dwarf_types_open(target->elf, &types);

	return err ? err : layout_read(dwarf_types_source(types), version, ret);
}

/* From DWARF, or where there is none from what is built in. Relocated. */
static struct error *read_layout(struct live_target *target)
{
	struct build_info *info scoped(build_info_freep) = NULL;
	struct layout_found found;
	struct error *err = build_info_read(target->elf, &info);

	if (err)
		return err;
	if (elf_file_has_dwarf(target->elf)) {
		err = read_dwarf(target, info->version, &target->layout);
		if (!err)
			layout_relocate(target->layout, target->load_bias);
		return err;
	}
	return layout_discover(&(struct layout_program){ target->elf, target->load_bias,
							 target->memory, info->version },
			       &target->layout, &found);
}

struct error *live_target_init(pid_t pid, struct live_target *ret)
{
	struct live_target target = { .exe_fd = -1 };
	struct error *err = open_proc(pid, "exe", &target.exe_fd);

	if (!err)
		err = elf_file_open(target.exe_fd, &target.elf);
	if (!err)
		err = read_load_bias(pid, target.elf, &target.load_bias);
	if (!err)
		err = open_memory(pid, &target.memory);
	if (!err)
		err = read_layout(&target);
	if (err) {
		live_target_fini(&target);
		return err;
	}
	*ret = target;
	return NULL;
}

void live_target_fini(struct live_target *target)
{
	memory_free(target->memory);
	layout_free(target->layout);
	elf_file_free(target->elf);
	closep(&target->exe_fd);
	*target = (struct live_target){ .exe_fd = -1 };
}
