#!/bin/bash
# The first process of a user-mode Linux machine. dir= and checkout= are on the kernel's command line, and so in its
# environment. / is the host's, read-only; $dir is the host's, too, and can be written; the disk is /mnt.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm; mount -t devpts pts /dev/pts
mount -t tmpfs run /run; mkdir -p /run/dir /run/home /run/tmp /run/lock
mount -t hostfs -o "$dir" none /run/dir
cd /run/dir || exit 1
python3 load_modules.py nls_utf8 hfsplus && mount -t hfsplus /dev/ubda /mnt && echo MOUNTED
export HYPOTHESIS_STORAGE_DIRECTORY=/run/tmp/hypothesis
export HOME=/run/home TMPDIR=/run/tmp FOLDING_DISK=/mnt PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8
bash command >output 2>&1
cd /; umount /mnt; sync
python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'
