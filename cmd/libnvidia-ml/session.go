package main

// #include "platform.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// session is what lies between nvmlInit and nvmlShutdown.
var session struct {
	mutex   sync.Mutex // guards users, and changes of machine
	users   int
	machine atomic.Pointer[simulator.Machine] // nil: not initialized
}

//export nvmlInit
func nvmlInit() int32 { return nvmlInit_v2() }

//export nvmlInitWithFlags
func nvmlInitWithFlags(flags uint32) int32 { return nvmlInit_v2() }

//export nvmlInit_v2
func nvmlInit_v2() int32 {
	session.mutex.Lock()
	defer session.mutex.Unlock()
	machine := session.machine.Load()
	if machine == nil {
		var err error
		if machine, err = findMachine(); err != nil {
			return abi.DriverNotLoaded
		}
	}
	state, err := machine.State()
	if err != nil || state.Driver != simulator.DriverLoaded || len(state.GPUs) > C.MAX_DEVICES {
		return abi.DriverNotLoaded
	}
	session.machine.Store(machine)
	session.users++
	return abi.Success
}

//export nvmlShutdown
func nvmlShutdown() int32 {
	session.mutex.Lock()
	defer session.mutex.Unlock()
	if session.users == 0 {
		return abi.Uninitialized
	}
	if session.users--; session.users == 0 {
		session.machine.Store(nil)
	}
	return abi.Success
}

func findMachine() (*simulator.Machine, error) {
	name := C.CString(simulator.RootVariable)
	defer C.free(unsafe.Pointer(name))
	if root := C.getenv(name); root != nil && *root != 0 {
		return follow(simulator.Open(C.GoString(root)))
	}
	path, err := filepath.Abs(C.GoString(C.library_path()))
	if err != nil {
		return nil, err
	}
	return follow(simulator.Find(path))
}

// follow makes the files of instances follow what is changed through m.
func follow(m *simulator.Machine, err error) (*simulator.Machine, error) {
	if err == nil {
		tree.Follow(m)
	}
	return m, err
}

// current is the state of the machine whose driver is loaded.
func current() (*simulator.State, abi.Return) {
	machine := session.machine.Load()
	if machine == nil {
		return nil, abi.Uninitialized
	}
	state, err := machine.State()
	if err != nil {
		return nil, abi.Unknown
	}
	if state.Driver != simulator.DriverLoaded {
		return nil, abi.DriverNotLoaded
	}
	return state, abi.Success
}

// handle is what a GPU is known by outside.
func handle(index int) unsafe.Pointer { return unsafe.Pointer(&C.device_handles[index]) }

func find(h unsafe.Pointer) (simulator.GPU, abi.Return) {
	state, code := current()
	if code != abi.Success {
		return simulator.GPU{}, code
	}
	index := uintptr(h) - uintptr(unsafe.Pointer(&C.device_handles[0]))
	if index >= uintptr(len(state.GPUs)) {
		return simulator.GPU{}, abi.InvalidArgument
	}
	return state.GPU(int(index)), abi.Success
}

// identity answers a call that a GPU in need of a reset still answers.
func identity(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return begin(h, call, func(g simulator.GPU) abi.Return {
		if code := injected(g, call); code != abi.Success {
			return code
		}
		return answer(g)
	})
}

// query answers any other call about a GPU.
func query(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return change(h, call, func(g simulator.GPU) abi.Return {
		if code := injected(g, call); code != abi.Success {
			return code
		}
		return answer(g)
	})
}

// change answers a call that changes a GPU through a method of simulator.Machine's,
// which sees to failures that were asked for.
func change(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return begin(h, call, func(g simulator.GPU) abi.Return {
		if g.Has(simulator.FaultResetRequired) {
			return abi.ResetRequired
		}
		return answer(g)
	})
}

// begin takes the time that a call takes.
func begin(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	g, code := find(h)
	if code != abi.Success {
		return code
	}
	if delay := g.Delay(call); delay > 0 {
		<-time.After(delay) // NVML has no contexts
		if g, code = find(h); code != abi.Success {
			return code
		}
	}
	if g.Has(simulator.FaultLost) {
		return abi.GPUIsLost
	}
	return answer(g)
}

// injected is how a call ends that was asked to fail.
func injected(g simulator.GPU, call string) abi.Return {
	if len(g.Failures) == 0 {
		return abi.Success
	}
	return codeOf(g, session.machine.Load().Call(g.Spec.UUID, call))
}

// codeOf is the code of what the core answered about a GPU.
func codeOf(g simulator.GPU, err error) abi.Return {
	switch {
	case err == nil:
		return abi.Success
	case errors.Is(err, simulator.ErrReadOnly):
		return abi.NoPermission
	case errors.Is(err, failure.Unsupported):
		return abi.NotSupported
	case errors.Is(err, failure.Busy):
		return abi.InUse
	case errors.Is(err, failure.Conflict):
		return abi.InsufficientResources
	case errors.Is(err, failure.Invalid):
		return abi.InvalidArgument
	case errors.Is(err, failure.Absent): // the GPU, or the instance of a handle
		if g, code := find(handle(g.Index)); code != abi.Success || g.Has(simulator.FaultLost) {
			return cmp.Or(code, abi.GPUIsLost)
		}
		return abi.InvalidArgument
	}
	return abi.Unknown
}

// set stores a value where the caller wants it.
func set[T any](to *T, value T) abi.Return {
	if to == nil {
		return abi.InvalidArgument
	}
	*to = value
	return abi.Success
}

// store is set for a structure. cgo lets exported functions take only types of
// this package, so that structures come as bare pointers.
func store[T any](to unsafe.Pointer, value T) abi.Return { return set((*T)(to), value) }

// version is the first field of a versioned structure; 0 is no version.
func version(of unsafe.Pointer) uint32 {
	if of == nil {
		return 0
	}
	return *(*uint32)(of)
}

// setString stores a C string.
func setString(to *byte, size uint32, value string) abi.Return {
	switch {
	case to == nil:
		return abi.InvalidArgument
	case int(size) <= len(value):
		return abi.InsufficientSize
	}
	abi.SetString(unsafe.Slice(to, size), value)
	return abi.Success
}
