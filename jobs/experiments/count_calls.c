// Counts calls of a program, for neural_network_cases.sh: allocations of host memory and copies of
// 4 KiB and more with memcpy and memmove. With -DCOUNT_CUDA also allocations and copies of the CUDA
// driver. At its end every process writes one line to the file $COUNT_CALLS.PID:
//
//   host_allocations host_copies device_allocations device_copies launches
//
// Load it with LD_PRELOAD, and with CUDA_INJECTION64_PATH for the counts of the driver. It does not
// see copies that a CUDA graph holds: a launch of a graph is one launch.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long host_allocations, host_copies, device_allocations, device_copies, launches;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
  ++host_allocations;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  ++host_allocations;
  return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
  ++host_allocations;
  return __libc_realloc(old, size);
}
void *memalign(size_t alignment, size_t size) {
  ++host_allocations;
  return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) {
  *result = memalign(alignment, size);
  return *result == NULL ? 12 : 0;  // ENOMEM
}

// dlsym() may copy before the function is known. Such copies are made byte by byte.
typedef void *(*Copy)(void *, const void *, size_t);
static void *copy_with(Copy *found, const char *name, void *to, const void *from, size_t size) {
  static atomic_int searching;
  if (size >= 4096) ++host_copies;
  if (*found == NULL && !atomic_exchange(&searching, 1)) {
    *found = (Copy)dlsym(RTLD_NEXT, name);
    searching = 0;
  }
  if (*found != NULL) return (*found)(to, from, size);
  volatile char *target = to;
  const volatile char *source = from;
  if (target <= source)
    for (size_t i = 0; i < size; ++i) target[i] = source[i];
  else
    for (size_t i = size; i-- > 0;) target[i] = source[i];
  return to;
}
void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  static Copy found;
  return copy_with(&found, "memcpy", to, from, size);
}
void *memmove(void *to, const void *from, size_t size) {
  static Copy found;
  return copy_with(&found, "memmove", to, from, size);
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("COUNT_CALLS");
  if (path == NULL) return;
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
  FILE *file = fopen(name, "w");
  if (file == NULL) return;
  fprintf(file, "%ld %ld %ld %ld %ld\n", host_allocations, host_copies, device_allocations, device_copies,
          launches);
  fclose(file);
}

#ifdef COUNT_CUDA
#include <cupti.h>

static void CUPTIAPI count(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  (void)unused, (void)domain, (void)id;
  const CUpti_CallbackData *call = data;
  if (call->callbackSite != CUPTI_API_ENTER) return;
  const char *name = call->functionName;
  if (strncmp(name, "cuMemAlloc", 10) == 0 || strncmp(name, "cuMemHostAlloc", 14) == 0) ++device_allocations;
  if (strncmp(name, "cuMemcpy", 8) == 0) ++device_copies;
  if (strncmp(name, "cuLaunch", 8) == 0 || strncmp(name, "cuGraphLaunch", 13) == 0) ++launches;
}

// CUDA calls this function when the program initialises CUDA.
int InitializeInjection(void) {
  CUpti_SubscriberHandle subscriber;
  return cuptiSubscribe(&subscriber, count, NULL) == CUPTI_SUCCESS &&
         cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS;
}
#endif
