/*
 * The files of a target that its keeper opens for its decoder, as they travel: exe and the rest of
 * /proc/PID. mem is the running process's; that of a snapshot follows later.
 */
#ifndef AGENT_TARGET_FILES_H
#define AGENT_TARGET_FILES_H

enum target_file {
	TARGET_FILE_EXE,
	TARGET_FILE_MAPS,
	TARGET_FILE_PAGEMAP,
	TARGET_FILE_STATUS,
	TARGET_FILE_AUXV,
	TARGET_FILE_MEM,
	TARGET_FILE_COUNT
};

#endif
