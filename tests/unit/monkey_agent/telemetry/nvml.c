/* A driver's library as NVML's header describes it, for machines without one. What its GPUs do stands in the file
 * $NVML_STATE, a line each: UUID PERCENT MEMORY_BYTES MILLIWATTS CELSIUS HOW, HOW being "fine", "old" (of a driver before
 * 510), "lost" (it fell off the bus), "split" (into one MIG instance), "hangs" or "crashes". It is read anew for each
 * call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15 };
typedef struct { char uuid[96], how[16]; unsigned percent, milliwatts, celsius; unsigned long long memory; } gpu;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;

/* What the driver keeps of each GPU for itself. The first question of memory counts it among what is in use. */
static const unsigned long long TOTAL = 80ull << 30, RESERVED = 600ull << 20;

static int look(unsigned index, gpu *one) {
    FILE *file = fopen(getenv("NVML_STATE"), "r");
    unsigned count = 0;
    int found = 0;
    gpu read;
    while (file && fscanf(file, "%95s %u %llu %u %u %15s", read.uuid, &read.percent, &read.memory, &read.milliwatts,
                          &read.celsius, read.how) == 6)
        if (count++ == index) { *one = read; found = 1; }
    if (file) fclose(file);
    return found ? SUCCESS : (int)count;
}

/* Handles are numbers: 1 and on for GPUs, 1001 and on for their instances. */
static int at(void *handle, gpu *one) {
    look((unsigned)((size_t)handle - 1) % 1000, one);
    if (!strcmp(one->how, "lost")) return GPU_IS_LOST;
    if (!strcmp(one->how, "hangs")) for (;;) pause();
    if (!strcmp(one->how, "crashes")) abort();
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return access(getenv("NVML_STATE"), R_OK) ? DRIVER_NOT_LOADED : SUCCESS; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == GPU_IS_LOST ? "GPU is lost" : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Other"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    gpu one;
    *count = 0;
    while (look(*count, &one) == SUCCESS) ++*count;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(size_t)(index + 1);
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned length) {
    gpu one;
    int code = at(handle, &one);
    if (!code) snprintf(uuid, length, (size_t)handle > 1000 ? "MIG-%s" : "%s", one.uuid);
    return code;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization *rates) {
    gpu one;
    int code = at(handle, &one);
    if (!code && !strcmp(one.how, "split")) return NOT_SUPPORTED;
    rates->gpu = one.percent;
    rates->memory = 1;
    return code;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory *told) {
    gpu one;
    int code = at(handle, &one);
    told->total = TOTAL;
    told->used = RESERVED + ((size_t)handle > 1000 ? one.memory / 2 : one.memory);
    told->free = told->total - told->used;
    return code;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2 *told) {
    memory first;
    gpu one;
    int code = nvmlDeviceGetMemoryInfo(handle, &first);
    if (code) return code;
    at(handle, &one);
    if (!strcmp(one.how, "old")) return FUNCTION_NOT_FOUND;
    if (told->version != (2u << 24 | sizeof *told)) return INVALID_ARGUMENT;
    told->total = TOTAL;
    told->reserved = RESERVED;
    told->free = first.free;
    told->used = first.used - RESERVED;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
    gpu one;
    int code = at(handle, &one);
    *milliwatts = one.milliwatts;
    return code;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius) {
    gpu one;
    int code = at(handle, &one);
    *celsius = one.celsius;
    return sensor ? INVALID_ARGUMENT : code;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    gpu one;
    int code = at(handle, &one);
    if (!code && strcmp(one.how, "split")) return NOT_SUPPORTED;
    *current = *pending = 1;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) {
    (void)handle;
    *count = 7;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **part) {
    *part = (void *)((size_t)handle + 1000);
    return index ? NOT_FOUND : SUCCESS;
}
