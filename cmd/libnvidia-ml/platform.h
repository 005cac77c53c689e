#pragma once

/* Handles are addresses in these arrays, so that they are valid pointers. */
enum { MAX_DEVICES = 256, MAX_EVENT_SETS = 64 };
extern char device_handles[MAX_DEVICES];
extern char event_set_handles[MAX_EVENT_SETS];

/* Path under which the loader opened this library, or NULL. */
const char *library_path(void);

/* Gives SIGURG back to whoever had it when the library was opened. */
void restore_host_signals(void);
