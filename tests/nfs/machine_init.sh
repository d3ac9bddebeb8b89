#!/bin/bash
# The first process of a user-mode Linux machine. dir=, name= and opts= are on the kernel's command line, and so in its
# environment. / is the host's, read-only; $dir is the host's, too, and can be written; the mount is /mnt.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm; mount -t devpts pts /dev/pts
mount -t tmpfs run /run; mkdir -p /run/dir /run/home /run/lock
mount -t hostfs -o "$dir" none /run/dir
mount -t tmpfs tmp /tmp; mount -t tmpfs var /var/lib/nfs 2>/dev/null; mount -t tmpfs vartmp /var/tmp
case $dir in /tmp/* | /var/tmp/* | /run/*) mkdir -p "$dir" ;; esac
mount --bind /run/dir "$dir"
printf '%s\n' "$(printf %s "$name$dir" | md5sum | cut -c1-32)" >/run/machine-id
mount --bind /run/machine-id /etc/machine-id
hostname "$name"
ip link set lo up; ip addr add "10.99.0.1${name#m}/24" dev vec0; ip link set vec0 up
python3 "$dir/load_modules.py" nfsv4 nfsv3
export HOME=/run/home; cd /run/home || exit 1
python3 "$dir/command_server.py" &
case $opts in *vers=3*) from=$dir/export ;; *) from=/export ;; esac # NFSv3 knows no pseudo paths
mount -t nfs -o "$opts" "10.99.0.1:$from" /mnt && echo "MOUNTED $(grep ' /mnt ' /proc/mounts)"
echo "UP $(cat /proc/uptime)"
while :; do wait; sleep 1; done
