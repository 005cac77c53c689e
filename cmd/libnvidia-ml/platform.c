#define _GNU_SOURCE
#include "platform.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

char device_handles[MAX_DEVICES];
char event_set_handles[MAX_EVENT_SETS];
char gpu_instance_handles[MAX_DEVICES * MAX_GPU_INSTANCES];
char compute_instance_handles[MAX_DEVICES * MAX_GPU_INSTANCES * MAX_COMPUTE_INSTANCES];
char mig_device_handles[MAX_DEVICES * MAX_GPU_INSTANCES * MAX_COMPUTE_INSTANCES];

const char *library_path(void) {
	Dl_info info;
	return dladdr(device_handles, &info) ? info.dli_fname : NULL;
}

/* A Go runtime takes SIGURG when it starts. In a process with a Go runtime of
 * its own that would end the process's preemption of long loops; this library
 * has none and needs none. */
static struct sigaction host_sigurg;

/* Before the runtime starts: its own constructor has no priority. */
__attribute__((constructor(101))) static void remember_host_signals(void) {
	sigaction(SIGURG, NULL, &host_sigurg);
}

void restore_host_signals(void) { sigaction(SIGURG, &host_sigurg, NULL); }
