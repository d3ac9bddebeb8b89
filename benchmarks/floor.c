// floor DIR FILES SIZE PROCESSES: make FILES files of SIZE bytes in 256 directories, close them, syncfs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
    int files = atoi(argv[2]), size = atoi(argv[3]), processes = atoi(argv[4]);
    double begun = now();
    char *data = malloc(size), path[4096];
    memset(data, 'x', size);
    for (int d = 0; d < 256; d++) { snprintf(path, sizeof path, "%s/%02x", argv[1], d); mkdir(path, 0777); }
    for (int p = 0; p < processes; p++)
        if (!fork()) {
            for (int n = p; n < files; n += processes) {
                unsigned h = (unsigned)n * 2654435761u;
                snprintf(path, sizeof path, "%s/%02x/%022x%08x", argv[1], h >> 24, n, h);
                int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
                if (fd < 0 || write(fd, data, size) != size) { perror(path); _exit(1); }
                close(fd);
            }
            _exit(0);
        }
    while (wait(NULL) > 0) ;
    double made = now();
    int fd = open(argv[1], O_RDONLY);
    syncfs(fd);
    printf("floor %d x %d, %d processes: made %.2f s, synced %.2f s, all %.2f s\n", files, size, processes, made - begun, now() - made, now() - begun);
}
