// Command libnvidia-ml is the simulated NVML: a shared library with NVML's
// binary interface that answers for the simulated machine it lies in
// (pkg/simulator). Build it with
//
//	go build -buildmode=c-shared -o libnvidia-ml.so.1 ./cmd/libnvidia-ml
//
// Every function of nvml.h is there; those that nobody here needs answer
// NVML_ERROR_NOT_SUPPORTED (stubs.c).
//
// The process that opens the library may itself be written in Go. Two Go
// runtimes then share it, which works as long as this one stays modest: it
// keeps its heap small, and leaves the signal that runtimes use for preemption
// to the process (platform.c). A memory limit would count what each thread of the
// process takes here too, and with many threads there is nothing but collecting.
package main

//go:generate go run ./internal/stubgen

// #include "platform.h"
import "C"

import (
	"runtime"
	"runtime/debug"
)

func init() {
	C.restore_host_signals()
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	debug.SetGCPercent(20)
}

func main() {}
