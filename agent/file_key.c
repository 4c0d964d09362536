#include "agent/file_key.h"

#include "agent/binary/index.h"

struct error *file_key_read(int fd, Goheapd__FileKey *ret)
{
	struct index_file_key key;
	struct error *err = index_file_key_read(fd, &key);

	if (err)
		return err;
	goheapd__file_key__init(ret);
	ret->device = key.device;
	ret->inode = key.inode;
	ret->size = key.size;
	ret->mtime_ns = key.mtime_ns;
	ret->ctime_ns = key.ctime_ns;
	return NULL;
}

void file_key_to_index(const Goheapd__FileKey *key, struct index_file_key *ret)
{
	*ret = (struct index_file_key){ .device = key->device,
					.inode = key->inode,
					.size = key->size,
					.mtime_ns = key->mtime_ns,
					.ctime_ns = key->ctime_ns };
}

bool file_key_equal(const Goheapd__FileKey *a, const Goheapd__FileKey *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}
