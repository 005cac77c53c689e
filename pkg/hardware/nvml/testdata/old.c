/* The least NVML that an old driver could have: one GPU that says where it is,
 * what it is called and how much memory it has. */
#include <string.h>

typedef struct {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
} pci_info;

static int gpu;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code ? "Error" : "Success"; }
int nvmlSystemGetDriverVersion(char *to, unsigned n) { strncpy(to, "450.51.06", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 11000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **to) { (void)i; *to = &gpu; return 0; }
int nvmlDeviceGetUUID(void *d, char *to, unsigned n) { (void)d; strncpy(to, "GPU-old", n); return 0; }

int nvmlDeviceGetPciInfo_v3(void *d, pci_info *to) {
	(void)d;
	memset(to, 0, sizeof *to);
	to->bus = 0x3b;
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *to) {
	(void)d;
	to[0] = 16ULL << 30;
	return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **to) { (void)uuid; *to = &gpu; return 0; }

/* It knows the mode, and no function for partitions. */
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *pending) {
	(void)d;
	*now = *pending = 1;
	return 0;
}

int nvmlEventSetCreate(void **to) { *to = &gpu; return 0; }
int nvmlEventSetFree(void *set) { (void)set; return 0; }

#define NOT_SUPPORTED(name) int name(void) { return 3; }
NOT_SUPPORTED(nvmlDeviceGetMinorNumber)
NOT_SUPPORTED(nvmlDeviceGetName)
NOT_SUPPORTED(nvmlDeviceGetBrand)
NOT_SUPPORTED(nvmlDeviceGetCudaComputeCapability)
NOT_SUPPORTED(nvmlDeviceGetEccMode)
NOT_SUPPORTED(nvmlDeviceGetComputeMode)
NOT_SUPPORTED(nvmlDeviceGetFieldValues)
NOT_SUPPORTED(nvmlDeviceGetSupportedEventTypes)
NOT_SUPPORTED(nvmlDeviceRegisterEvents)
