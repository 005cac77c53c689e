#pragma once

/* Handles are addresses in these arrays, so that they are valid pointers. Those of
 * instances follow from their IDs, and come again with them. */
enum {
	MAX_DEVICES = 256,
	MAX_EVENT_SETS = 64,
	MAX_GPU_INSTANCES = 16,   /* of a GPU */
	MAX_COMPUTE_INSTANCES = 8 /* of a GPU instance */
};
extern char device_handles[MAX_DEVICES];
extern char event_set_handles[MAX_EVENT_SETS];
extern char gpu_instance_handles[MAX_DEVICES * MAX_GPU_INSTANCES];
extern char compute_instance_handles[MAX_DEVICES * MAX_GPU_INSTANCES * MAX_COMPUTE_INSTANCES];
extern char mig_device_handles[MAX_DEVICES * MAX_GPU_INSTANCES * MAX_COMPUTE_INSTANCES];

/* Path under which the loader opened this library, or NULL. */
const char *library_path(void);

/* Gives SIGURG back to whoever had it when the library was opened. */
void restore_host_signals(void);
