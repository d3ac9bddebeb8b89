/* A driver's library (libcuda.so.1) with one GPU that is not there. What a process holds of it stands in the file
 * $FAKE_CARD/processes/PID: BYTES and PERCENT. Nothing is allocated, and nothing is computed. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NO_DEVICE = 100 };
/* As tests/unit/monkey_agent/telemetry/nvml.c has it. */
static const unsigned long long TOTAL = 80ull << 30;
static unsigned long long held;
static unsigned percent;

static void tell(void) {
    char path[4096], aside[4096];
    snprintf(path, sizeof path, "%s/processes/%d", getenv("FAKE_CARD"), (int)getpid());
    snprintf(aside, sizeof aside, "%s/aside-%d", getenv("FAKE_CARD"), (int)getpid());
    FILE *file = fopen(aside, "w");
    if (!file) abort();
    fprintf(file, "%llu %u\n", held, percent);
    fclose(file);
    rename(aside, path);
}

int cuInit(unsigned flags) {
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");
    return flags || (seen && !*seen) ? NO_DEVICE : SUCCESS;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return number ? NO_DEVICE : SUCCESS;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    *context = (void *)&held;
    held = 300ull << 20; /* what a context takes by itself */
    tell();
    return flags || device ? NO_DEVICE : SUCCESS;
}

int cuCtxDestroy_v2(void *context) {
    (void)context;
    held = percent = 0;
    tell();
    return SUCCESS;
}

int cuCtxSynchronize(void) {
    usleep(20000);
    return SUCCESS;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    *total = TOTAL;
    *free = TOTAL - held;
    return SUCCESS;
}

int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) {
    if (held + bytes > TOTAL) return OUT_OF_MEMORY;
    held += bytes;
    *pointer = 4096;
    tell();
    return SUCCESS;
}

int cuMemsetD32_v2(unsigned long long pointer, unsigned value, size_t count) {
    (void)pointer, (void)value, (void)count;
    if (percent == 100) return SUCCESS;
    percent = 100;
    tell();
    return SUCCESS;
}

int cuGetErrorName(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "other";
    return SUCCESS;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "out of memory" : code == NO_DEVICE ? "no CUDA-capable device is detected" : "other";
    return SUCCESS;
}
