package main

// #include "platform.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
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
	if wait(machine, "nvmlInit") != nil {
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
		_ = wait(session.machine.Load(), "nvmlShutdown") // of a machine that went away there is nothing to let go
		session.machine.Store(nil)
	}
	return abi.Success
}

// wait is for what a call takes of the GPUs, which are done side by side.
func wait(m *simulator.Machine, call string) error {
	return m.Linger(context.Background(), func(s *simulator.State) (most time.Duration) {
		for i := range s.GPUs {
			most = max(most, s.GPU(i).Delays[call])
		}
		return most
	})
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
